"""What a caller may choose about an encoder."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class EncoderOptions:
    """How wide the vectors may grow.

    Parameters
    ----------
    max_categories
        One-hot features of a column at most; rarer categories share the last one.
    text_components
        Features of a text column at most.
    max_ngrams
        Character n-grams of a text column that are remembered, the most frequent first.
    ngram_sizes
        The shortest and the longest n-gram.
    """

    max_categories: int = 32
    text_components: int = 16
    max_ngrams: int = 20_000
    ngram_sizes: tuple[int, int] = (3, 4)

    def __post_init__(self) -> None:
        for name, least in (("max_categories", 2), ("text_components", 1), ("max_ngrams", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}; got {getattr(self, name)}")
        shortest, longest = self.ngram_sizes
        if not 1 <= shortest <= longest:
            raise ValueError(
                f"ngram_sizes must be (shortest, longest) with 1 <= shortest <= longest; "
                f"got {self.ngram_sizes}"
            )
