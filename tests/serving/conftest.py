"""A model file, and servers that end with the test."""

import pytest

from tests.serving.model import Server, write_model


@pytest.fixture
def file(tmp_path):
    return write_model(tmp_path / "people.model")


@pytest.fixture
def serve():
    servers = []

    def start(*arguments, **options):
        servers.append(Server(*arguments, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.kill()
