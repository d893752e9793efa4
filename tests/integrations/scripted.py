"""A chat model that says what a test wrote down, for agents that need no key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult


def call(name: str, **arguments: Any) -> AIMessage:
    """A message that calls a tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": f"call-{name}", "type": "tool_call"}])


class ScriptedModel(BaseChatModel):
    """Answers with the next message of its script; keeps what it was told."""

    script: list[AIMessage]
    heard: list[list[BaseMessage]] = []  # noqa: RUF012 - pydantic copies it

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.heard.append(messages)
        return ChatResult(generations=[ChatGeneration(message=self.script[len(self.heard) - 1])])

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        return self

    @property
    def _llm_type(self) -> str:
        return "scripted"
