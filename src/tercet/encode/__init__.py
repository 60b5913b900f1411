"""Tables, dicts and text to vectors: fitted once on the history, applied in microseconds."""

from tercet.encode.apply import Encoder
from tercet.encode.options import EncoderOptions

__all__ = ["Encoder", "EncoderOptions"]
