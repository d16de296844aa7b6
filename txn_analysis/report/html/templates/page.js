(() => {
  "use strict";
  const said = document.getElementById("said");

  // Some browsers refuse the clipboard to a file: then an older way is tried, and at last the command stays selected.
  const copyByEvent = (text) => {
    let isCopied = false;
    const fill = (event) => {
      event.clipboardData.setData("text/plain", text);
      event.preventDefault();
      isCopied = true;
    };
    document.addEventListener("copy", fill, { once: true });
    try {
      document.execCommand("copy");
    } catch {
      // Refused as well.
    }
    document.removeEventListener("copy", fill);
    return isCopied;
  };

  const copy = async (pre) => {
    const text = pre.textContent;
    try {
      await navigator.clipboard.writeText(text);
      return "Copied";
    } catch {
      getSelection().selectAllChildren(pre);
      return copyByEvent(text) ? "Copied" : "Press Ctrl+C";
    }
  };

  for (const box of document.querySelectorAll(".command")) {
    const pre = box.firstElementChild;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "Copy";
    const name = `Copy: ${pre.textContent.slice(0, 80)}`;
    button.setAttribute("aria-label", name);
    button.addEventListener("click", async () => {
      const answer = await copy(pre);
      said.textContent = answer === "Copied" ? "Copied" : "Not copied: the command is selected, press Ctrl+C";
      button.textContent = answer;
      button.setAttribute("aria-label", `${answer}: ${pre.textContent.slice(0, 80)}`);
      setTimeout(() => {
        button.textContent = "Copy";
        button.setAttribute("aria-label", name);
      }, 3000);
    });
    pre.removeAttribute("tabindex");
    box.append(button);
  }

  const table = document.getElementById("findings");
  if (!table) return;
  const findings = [...table.tBodies];
  const filter = document.getElementById("filter");
  const boxes = [...document.querySelectorAll("input[name=verdict]")];
  const shown = document.getElementById("shown");
  const nothing = document.getElementById("nothing");
  const expand = document.getElementById("expand");
  const headers = [...table.tHead.rows[0].cells];
  const FEW = 3; // so many findings of one cause are not worth a click
  const MOST_ON_PAPER = 10;
  const unfolded = new Set();
  const texts = new Map();
  const groups = new Map();
  for (const finding of findings) {
    const members = groups.get(finding.dataset.group) ?? [];
    groups.set(finding.dataset.group, [...members, finding]);
  }

  const textOf = (finding) => {
    if (!texts.has(finding)) texts.set(finding, finding.textContent.toLowerCase());
    return texts.get(finding);
  };

  const wordsOf = () => filter.value.toLowerCase().split(/\s+/).filter(Boolean);
  const isSorted = () => headers.some((header) => header.hasAttribute("aria-sort"));

  const refresh = () => {
    const words = wordsOf();
    const verdicts = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    const areFolded = !words.length && !isSorted();
    let count = 0;
    for (const [group, members] of groups) {
      const isOpen = unfolded.has(group);
      for (const finding of members) {
        const fits = verdicts.has(finding.dataset.verdict) && words.every((word) => textOf(finding).includes(word));
        const isFolded = areFolded && members.length > FEW && finding !== members[0] && !isOpen;
        finding.hidden = !fits;
        finding.classList.toggle("folded", isFolded);
        finding.classList.toggle("many", members.length > MOST_ON_PAPER);
        count += fits && !isFolded;
      }
      const button = members[0].querySelector("button.unfold");
      if (!button) continue;
      button.setAttribute("aria-expanded", String(isOpen));
      button.textContent = `${isOpen ? "Hide" : "Show"} ${members.length - 1} more`;
      button.hidden = !areFolded;
    }
    shown.textContent = `${count} of ${findings.length} shown`;
    nothing.hidden = count > 0;
  };

  // The filter is kept behind the #, where also a page that is a file can change its address.
  const writeAddress = () => {
    const asked = new URLSearchParams();
    if (wordsOf().length) asked.set("filter", wordsOf().join(" "));
    const checked = boxes.filter((box) => box.checked).map((box) => box.value);
    if (checked.length < boxes.length) asked.set("verdicts", checked.join(","));
    const address = `#${asked}`;
    try {
      history.replaceState(null, "", address);
    } catch {
      location.replace(address);
    }
  };

  const readAddress = () => {
    const behind = location.hash.slice(1);
    const finding = document.getElementById(behind)?.closest("tbody.finding");
    const asked = new URLSearchParams(behind);
    if (finding) {
      unfolded.add(finding.dataset.group);
      if (finding.hidden) filter.value = "";
      if (finding.hidden) for (const box of boxes) box.checked = true;
      document.getElementById(behind).open = true;
    } else if (asked.has("filter") || asked.has("verdicts")) {
      const verdicts = asked.get("verdicts")?.split(",");
      filter.value = asked.get("filter") ?? "";
      for (const box of boxes) box.checked = !verdicts || verdicts.includes(box.value);
    }
    refresh();
    if (finding) finding.scrollIntoView();
  };

  for (const [group, [first, ...others]] of groups) {
    if (others.length < FEW) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "unfold";
    button.addEventListener("click", () => {
      if (!unfolded.delete(group)) unfolded.add(group);
      refresh();
    });
    first.querySelector(".alike p").append(" ", button);
  }

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
    refresh();
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
    for (const group of groups.keys()) opens ? unfolded.add(group) : unfolded.delete(group);
    refresh();
    for (const finding of findings)
      for (const details of finding.querySelectorAll("details")) details.open = opens && !finding.hidden;
  });

  const change = () => {
    refresh();
    writeAddress();
  };
  filter.addEventListener("input", change);
  for (const box of boxes) box.addEventListener("change", change);
  addEventListener("hashchange", readAddress);
  document.getElementById("controls").hidden = false;
  readAddress();
})();
