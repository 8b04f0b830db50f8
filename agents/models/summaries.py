"""`recall.digest: summarize`: a model writes the words that stand in the prompt for the steps that left it.

Each eviction makes one short request, which is tried once and counted like any other. Every failure is raised: the
memory then keeps the digest that it built itself.
"""

from agents.meter import Meter
from agents.models.model import Model, ModelError
from pager import SummaryRequest, count_tokens

READ_SECONDS = 60.0  # the longest wait for the model; then the memory keeps the digest that it built
THINKING_TOKENS = 2000  # a model that thinks first needs room beyond its summary
INSTRUCTIONS = """\
You write the memory of a conversation between a person and an assistant. Its oldest steps leave the assistant's prompt;
your words stand there in their place. Say what was asked, what was found out and decided, what is still to be done,
with names, numbers, dates and the ids of the steps (s12). Keep what an earlier summary says, shorter. Plain sentences
in one paragraph, in the language of the conversation, and nothing else."""


class Summarizer:
    """Writes summaries with a model, of texts of at most `limit_tokens`."""

    def __init__(self, model: Model, meter: Meter, limit_tokens: int) -> None:
        self._model = model
        self._meter = meter
        self._limit_tokens = limit_tokens

    def __call__(self, ask: SummaryRequest) -> str:
        """Return a summary. Raise ModelError if the text is too long or the summary was not finished."""
        text = f"{ask.earlier}\n\n{ask.leaving}".strip()
        if count_tokens(text) > self._limit_tokens:
            raise ModelError("what leaves is too long for one request.")
        request = f"{text}\n\nSummarize all of this in at most {ask.limit_tokens} tokens."
        messages = [{"role": "user", "content": request}]
        params = {"max_tokens": ask.limit_tokens + THINKING_TOKENS, "system": INSTRUCTIONS, "messages": messages}
        pieces = self._model.stream(params)
        while True:
            try:
                next(pieces)
            except StopIteration as end:
                message = end.value.message
                break
        self._meter.spend(message)
        if message["stop_reason"] not in ("end_turn", "stop_sequence"):
            raise ModelError(f"the summary was not finished: {message['stop_reason']}.")
        return "\n".join(block["text"] for block in message["content"] if block["type"] == "text")
