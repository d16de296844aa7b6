(() => {
  "use strict";
  const table = document.getElementById("findings");
  if (!table) return;
  const findings = [...table.tBodies];
  const filter = document.getElementById("filter");
  const boxes = [...document.querySelectorAll("input[name=verdict]")];
  const shown = document.getElementById("shown");
  const nothing = document.getElementById("nothing");
  const expand = document.getElementById("expand");
  const headers = [...table.tHead.rows[0].cells];
  const texts = new Map();

  const textOf = (finding) => {
    if (!texts.has(finding)) texts.set(finding, finding.textContent.toLowerCase());
    return texts.get(finding);
  };

  const applyFilter = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const verdicts = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    let count = 0;
    for (const finding of findings) {
      const fits = verdicts.has(finding.dataset.verdict) && words.every((word) => textOf(finding).includes(word));
      finding.hidden = !fits;
      count += fits;
    }
    shown.textContent = `${count} of ${findings.length} shown`;
    nothing.hidden = count > 0;
  };

  const keyOf = (finding, column) => finding.rows[0].cells[column].dataset.sort;

  const compare = (column, isNumber) => (one, other) => {
    const [a, b] = [keyOf(one, column), keyOf(other, column)];
    return isNumber ? Number(a) - Number(b) : a.localeCompare(b, "en", { numeric: true });
  };

  const sortBy = (column) => {
    const header = headers[column];
    const isNumber = column === 0 || header.classList.contains("number");
    const descending = header.ariaSort ? header.ariaSort === "ascending" : isNumber;
    for (const other of headers) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const ordered = [...findings].sort(compare(column, isNumber));
    if (descending) ordered.reverse();
    table.append(...ordered);
  };

  headers.forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...header.childNodes);
    button.addEventListener("click", () => sortBy(column));
    header.append(button);
  });

  expand.addEventListener("click", () => {
    const opens = expand.getAttribute("aria-pressed") !== "true";
    expand.setAttribute("aria-pressed", String(opens));
    for (const finding of findings)
      for (const details of finding.querySelectorAll("details")) details.open = opens && !finding.hidden;
  });

  filter.addEventListener("input", applyFilter);
  for (const box of boxes) box.addEventListener("change", applyFilter);
  document.getElementById("controls").hidden = false;
  applyFilter();
})();
