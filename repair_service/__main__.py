"""`python -m repair_service`, for where the script is not on the PATH."""

from repair_service.cli.app import run

if __name__ == "__main__":
    run()
