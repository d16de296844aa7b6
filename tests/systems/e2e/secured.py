"""A broker that asks who is there: SCRAM over TLS on a listener of its own, and rights by ACLs."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.systems.e2e.broker import Cluster
from tests.tools.kafka_jars import config_tool

USER, PASSWORD = "auditor", "not-so-secret"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"


class SecuredCluster(Cluster):
    """A cluster whose second listener speaks SASL_SSL alone; on the first one everybody may do everything."""

    def __init__(self, version: str, folder: Path, **known: object) -> None:
        super().__init__(version, folder, has_guests=True, properties=known)
        folder.mkdir(parents=True)
        self.certificate, self._key = folder / "certificate.pem", folder / "key.pem"
        words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
        names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
        subprocess.run(
            [*words, *names, "-keyout", str(self._key), "-out", str(self.certificate)], check=True, capture_output=True
        )
        (folder / "keystore.pem").write_text(self._key.read_text() + self.certificate.read_text())

    def _for_guests(self, own: Mapping[str, object]) -> dict[str, object]:
        guests = f"SASL_SSL://{self.guest_bootstrap}"
        return {
            "listeners": f"{own['listeners']},{guests}",
            "advertised.listeners": f"{own['advertised.listeners']},{guests}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{_SCRAM};",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.folder / "keystore.pem",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
        }

    @property
    def guest_config(self) -> str:
        """What a client of the second listener puts into its `--command-config`."""
        return (
            "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
            f'sasl.jaas.config={_SCRAM} username="{USER}" password="{PASSWORD}";\n'
            f"ssl.truststore.type=PEM\nssl.truststore.location={self.certificate}\n"
        )

    def admit(self) -> None:
        """Give the user its password."""
        words = ("--alter", "--add-config", f"SCRAM-SHA-512=[password={PASSWORD}]")
        self.run(
            config_tool(self.version),
            *("--bootstrap-server", self.bootstrap),
            *(*words, "--entity-type", "users", "--entity-name", USER),
        )

    def grant(self, operation: str, *resource: str) -> None:
        """Give the user a right, as `kafka-acls.sh` does it."""
        words = ("--add", "--allow-principal", f"User:{USER}", "--operation", operation, *resource)
        self.run("org.apache.kafka.tools.AclCommand", "--bootstrap-server", self.bootstrap, *words, "--force")
