"""Build steps of the package: its version, and `tensord.v1` from the proto files."""

import shutil
import subprocess
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

_HERE = Path(__file__).resolve().parent
_PROTO_ROOT = _HERE.parent.parent / "proto"
_VERSION = _HERE.parent.parent / "deploy" / "version"


def generate_stubs(destination: Path) -> None:
    """Writes messages, type hints and gRPC stubs below `destination`.

    The proto package `tensord.v1` becomes the Python package `tensord.v1`, so the
    generated imports are right as they are.

    Args:
        destination: Folder that holds the package `tensord`.

    Raises:
        RuntimeError: The proto files are missing or do not compile.
    """
    import grpc_tools
    from grpc_tools import protoc

    protos = sorted((_PROTO_ROOT / "tensord" / "v1").glob("*.proto"))
    if not protos:
        raise RuntimeError(f"no proto files in {_PROTO_ROOT}; build from a checkout")
    package = destination / "tensord" / "v1"
    package.mkdir(parents=True, exist_ok=True)
    status = protoc.main(
        [
            "protoc",
            f"--proto_path={_PROTO_ROOT}",
            f"--proto_path={Path(grpc_tools.__file__).parent / '_proto'}",
            f"--python_out={destination}",
            f"--pyi_out={destination}",
            f"--grpc_python_out={destination}",
            *map(str, protos),
        ]
    )
    if status != 0:
        raise RuntimeError(f"protoc ended with status {status}")
    (package / "__init__.py").write_text(
        '"""Generated messages and stubs of the package tensord.v1."""\n'
    )


class BuildWithStubs(build_py):
    """Copies the package and adds the stubs; editable installs get them in place."""

    def run(self) -> None:
        if not self.editable_mode:  # What an earlier build left may be there no more.
            shutil.rmtree(Path(self.build_lib) / "tensord", ignore_errors=True)
        super().run()
        generate_stubs(_HERE if self.editable_mode else Path(self.build_lib))


def version() -> str:
    """Returns the version of the checkout.

    Raises:
        RuntimeError: This is no checkout.
    """
    if not _VERSION.exists():
        raise RuntimeError(f"there is no {_VERSION}; build from a checkout")
    said = subprocess.run([_VERSION], capture_output=True, text=True, check=True)
    return said.stdout.strip()


setup(version=version(), cmdclass={"build_py": BuildWithStubs})
