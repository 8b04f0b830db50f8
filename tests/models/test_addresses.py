"""The address of a provider: its own one where a variable is set to nothing, and a sentence for what is no address."""

import pytest

from agents.models import anthropic, openai


@pytest.mark.parametrize(("module", "variable"), [(anthropic, "ANTHROPIC_BASE_URL"), (openai, "OPENAI_BASE_URL")])
def test_a_variable_that_is_set_to_nothing_means_the_providers_own(
    module: object, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def address() -> str:
        if module is openai:
            client = openai.make_client(base_url=None, api_key="k", read_seconds=None)
        else:
            client = anthropic.make_client("anthropic", base_url=None, api_key="k", read_seconds=None)
        with client:
            return str(client.base_url)

    monkeypatch.delenv(variable, raising=False)
    own = address()
    monkeypatch.setenv(variable, "")
    assert address() == own
    assert own.startswith("https://")


def test_what_is_no_address_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://host:port")
    why = anthropic.AnthropicModel("m", api_key="k").unreachable()
    assert "the model's client cannot be created: Invalid port: 'port'" in why
