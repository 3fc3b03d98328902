"""Real mail servers on loopback: OpenSMTPD takes mails, hands them to Dovecot (LMTP), and Dovecot shows them (IMAP).

OpenSMTPD as Debian 12 has it fails at every TLS handshake (it does not fit its OpenSSL): TLS is what `relay` adds.
Each pair has a folder and ports of its own, and ends with whoever has begun it. Both want to be root, to give up most
of it themselves.
"""

import os
import shutil
import smtplib
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from functools import partial
from pathlib import Path

from tests.ports import free_port

DOVECOT = shutil.which("dovecot") or shutil.which("/usr/sbin/dovecot")
SMTPD = shutil.which("smtpd") or shutil.which("/usr/sbin/smtpd")
_WITH_US = ("setpriv", "--pdeathsig", "KILL")  # also when the tests are killed
PASSWORD = "canary-mail-password"
BOT = "bot@agent.example"

_DOVECOT = """
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/dovecot.log
protocols = imap lmtp
listen = 127.0.0.1
ssl = yes
ssl_cert = <{folder}/cert.pem
ssl_key = <{folder}/key.pem
disable_plaintext_auth = no
auth_mechanisms = plain login
mail_location = maildir:{folder}/mail/%u
mail_uid = mail
mail_gid = mail
first_valid_uid = 1
default_internal_user = dovecot
default_login_user = dovenull
auth_failure_delay = 0
service anvil {{
  unix_listener anvil-auth-penalty {{
    mode = 0
  }}
}}
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid=mail gid=mail home={folder}/mail/%u allow_all_users=yes
}}
namespace inbox {{
  inbox = yes
  mailbox Done {{
    auto = create
  }}
}}
service imap-login {{
  inet_listener imap {{
    address = 127.0.0.1
    port = {imap}
  }}
  inet_listener imaps {{
    address = 127.0.0.1
    port = {imaps}
    ssl = yes
  }}
  process_min_avail = 0
}}
service lmtp {{
  inet_listener lmtp {{
    address = 127.0.0.1
    port = {lmtp}
  }}
}}
protocol lmtp {{
  auth_username_format = %Lu
}}
service stats {{
  client_limit = 100
}}
"""
_SMTPD = """
table catchall {{ "@" = "dovecot" }}
listen on 127.0.0.1 port {smtp} hostname localhost
action "in" lmtp "127.0.0.1:{lmtp}" rcpt-to virtual <catchall>
match from any for any action "in"
"""


def missing() -> str:
    """Why they cannot be had here, or ""."""
    if not DOVECOT or not SMTPD:
        return "Dovecot and OpenSMTPD are not installed (Debian: dovecot-imapd dovecot-lmtpd opensmtpd)"
    return "" if os.geteuid() == 0 else "Dovecot and OpenSMTPD want to be started as root"


class MailServer:
    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="everloop-mail-", dir="/tmp"))  # a short path: sockets' names
        self.ports = {name: free_port() for name in ("imap", "imaps", "lmtp", "smtp")}
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def ca_file(self) -> str:
        return str(self.folder / "cert.pem")

    def settings(self, security: str = "none", address: str = BOT, **more: object) -> dict[str, object]:
        """Those of the bot's mailbox."""
        imap = self.ports["imaps" if security == "tls" else "imap"]
        hosts = {"imap_host": "127.0.0.1", "imap_port": imap, "imap_security": security}
        hosts |= {"smtp_host": "127.0.0.1", "smtp_port": self.ports["smtp"], "smtp_security": security}
        return {"address": address, "password": PASSWORD, **hosts, **more}

    def start(self) -> None:
        self._prepare()
        assert DOVECOT
        log = (self.folder / "smtpd.log").open("wb")
        self._run([*_WITH_US, DOVECOT, "-F", "-c", str(self.folder / "dovecot.conf")], log)
        # its queue and its socket are where they always are: each has its own there, which nobody else sees
        apart = "mount -t tmpfs -o mode=711 tmpfs /var/spool/smtpd && mount -t tmpfs tmpfs /run && exec"
        self._run(
            [*_WITH_US, "unshare", "-m", "sh", "-c", f'{apart} {SMTPD} -d -f "$0"', str(self.folder / "smtpd.conf")],
            log,
        )
        for port in self.ports.values():
            self._reach(port)

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _prepare(self) -> None:
        folder = self.folder
        folder.chmod(0o755)
        Path("/var/spool/smtpd").mkdir(parents=True, exist_ok=True)
        (folder / "mail").mkdir()
        shutil.chown(folder / "mail", "mail", "mail")
        made = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
        made += ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
        out = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
        subprocess.run(["openssl", "req", *made, *out], check=True, capture_output=True)
        (folder / "key.pem").chmod(0o600)
        told = {"folder": folder, "password": PASSWORD, **self.ports}
        (folder / "dovecot.conf").write_text(_DOVECOT.format(**told))
        (folder / "smtpd.conf").write_text(_SMTPD.format(**told))
        (folder / "smtpd.conf").chmod(0o600)

    def _run(self, command: list[str], log: object) -> None:
        self._processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log))  # type: ignore[arg-type]

    def _reach(self, port: int) -> None:
        until = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                assert all(each.poll() is None for each in self._processes), self.said()
                assert time.monotonic() < until, self.said()
                time.sleep(0.02)

    def said(self) -> str:
        logs = [self.folder / name for name in ("smtpd.log", "dovecot.log")]
        return "\n".join(log.read_text(errors="replace")[-2000:] for log in logs if log.exists())

    def post(self, raw: bytes, sender: str, recipient: str = BOT) -> None:
        """As another server would: to OpenSMTPD, which hands it on."""
        with smtplib.SMTP("127.0.0.1", self.ports["smtp"]) as client:
            client.sendmail(sender, [recipient], raw)

    def names(self, address: str = BOT) -> set[str]:
        """Of the mails of a mailbox, none of which is opened: Dovecot gives each another file as it is looked at."""
        return {file.name.partition(":")[0] for file in self._mails(address, "*")}

    def flags(self, address: str = BOT) -> dict[str, str]:
        """The mails of a mailbox that somebody has looked at, by their files, with the flags that they have."""
        return {file.name.partition(":")[0]: file.name.rpartition(",")[2] for file in self._mails(address, "cur")}

    def mails(self, address: str = BOT) -> list[EmailMessage]:
        """What lies in a mailbox, in the order in which it came."""
        return [_read(file) for file in self._mails(address, "*")]

    def unread(self, address: str, known: Collection[str]) -> list[tuple[str, Callable[[], EmailMessage]]]:
        """What lies in a mailbox, by its files, but for those that are known: each is read when it is called for."""
        files = [file for file in self._mails(address, "*") if file.name not in known]
        return [(file.name, partial(_read, file)) for file in files]

    def _mails(self, address: str, folder: str) -> list[Path]:
        """In the order in which they came."""
        found = (self.folder / "mail" / address).glob(f"{folder}/*.*")
        return sorted((file for file in found if file.parent.name != "tmp"), key=lambda file: came(file.name))


def _read(file: Path) -> EmailMessage:
    return message_from_bytes(file.read_bytes(), policy=default)


def came(name: str) -> tuple[int, int]:
    """When, by the name of its file in a maildir: `1700000000.M98P1.host`, in which the microseconds have no zeros."""
    seconds, _, rest = name.partition(".M")
    return int(seconds), int(rest.partition("P")[0] or 0)


def written(text: str, *, sender: str = "anna@people.example", id: str = "", **headers: str) -> bytes:
    """A mail as somebody writes one to the bot."""
    message = EmailMessage()
    message["From"] = sender
    message["To"] = BOT
    if id:
        message["Message-ID"] = f"<{id}>"
    for name, value in headers.items():
        message[name.replace("_", "-")] = value
    message.set_content(text)
    return message.as_bytes()
