"""Collects in one file the licences of everything linked into a release's programs. Texts and notices are unchanged."""

import json
import re
import sysconfig
from pathlib import Path
from subprocess import PIPE

import tomlkit

from build import ROOT, TARGET, Refused, gnu, musl, run

LICENCES = "THIRD-PARTY-LICENCES.txt"

NOTICE = re.compile(r"(licen[cs]e|notice|copying|copyright|unlicense)", re.IGNORECASE)
# A placeholder in a copyright line. (The placeholders in the appendix of Apache-2.0 are in brackets.)
BLANK = re.compile(r"<(year|owner|copyright holders?)>")


def licences(packages: list[str], archs: list[str]) -> str:
    """Returns the text of the file. Fails if deny.toml does not allow a licence."""
    config = TARGET / "about.toml"
    config.write_text(policy())
    # The crates that use each licence text.
    users: dict[str, set[str]] = {of_musl(): {"musl"}}
    for package in packages:
        # With `--frozen`, cargo-about works offline, and takes licence texts only from the crates' own files.
        options = ["--format", "json", "--frozen", "--fail", "--config", str(config)]
        targets = [target(arch) for target in (gnu, musl) for arch in archs]
        chosen = [argument for target in targets for argument in ("--target", target)]
        manifest = str(ROOT / package / "Cargo.toml")
        found = run("cargo", "about", "generate", *options, *chosen, "--manifest-path", manifest, stdout=PIPE)
        for name, text in texts(json.loads(found)["licenses"]):
            users.setdefault(text, set()).add(name)
    return "\n".join(section(text, names) for text, names in sorted(users.items(), key=lambda it: sorted(it[1])))


def policy() -> str:
    """Returns the licences that deny.toml allows, as settings for cargo-about."""
    allowed = tomlkit.parse((ROOT / "deny.toml").read_text())["licenses"]
    settings = {
        "accepted": allowed["allow"],
        # Limits cargo-about's search for licence files, which otherwise takes minutes. Only the licences' names are
        # needed.
        "max-depth": 1,
        "ignore-build-dependencies": True,
        "ignore-dev-dependencies": True,
    } | {exception["crate"]: {"accepted": exception["allow"]} for exception in allowed["exceptions"]}
    return tomlkit.dumps(settings)


def texts(licences: list[dict]) -> list[tuple[str, str]]:
    """Returns each third-party crate with each of its licence texts."""
    found = []
    for licence in licences:
        for crate in (use["crate"] for use in licence["used_by"]):
            if crate["source"] is None:
                continue
            name = f"{crate['name']} {crate['version']}"
            own = notices(Path(crate["manifest_path"]).parent)
            found += [(name, text) for text in own or [filled(licence["text"], crate["name"])]]
    return found


def notices(crate: Path) -> list[str]:
    """Returns the licence and notice files of a crate, including those of its C code."""
    files = (path for path in sorted(crate.rglob("*")) if NOTICE.match(path.name) and path.suffix != ".rs")
    linked = (path for path in files if path.is_file() and not {"benches", "tests"} & {*path.relative_to(crate).parts})
    return [path.read_text(errors="replace").strip() for path in linked]


def filled(text: str, crate: str) -> str:
    """Fills in the general text of a licence, for a crate that names the licence but does not include its text."""
    text = re.sub(r"<year> <(owner|copyright holders)>", f"the authors of {crate}", text).strip()
    if BLANK.search(text):
        raise Refused(f"{crate} holds no text of its licence, and the general one has blanks:\n{text}")
    return text


def of_musl() -> str:
    """Returns the licence of musl, which Zig links into the command."""
    return (Path(sysconfig.get_path("purelib")) / "ziglang/lib/libc/musl/COPYRIGHT").read_text().strip()


def section(text: str, crates: set[str]) -> str:
    line = "=" * 100
    return f"{line}\nOf {', '.join(sorted(crates))}\n{line}\n\n{text}\n"
