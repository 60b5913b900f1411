"""Articles to vectors: by their titles, or by who clicked them."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, final, runtime_checkable

import numpy as np

from tercet.checks import Matrix, Vector
from tercet.types import Ids

MEMORY = 21 * 24.0  # hours: tastes are made of the last three weeks


@runtime_checkable
class Embedder(Hashable, Protocol):
    """A callable that makes a vector of each text.

    Law: a row depends on its own text only, so that titles of tomorrow change nothing today. Embedders
    are cached by value: make them hashable, for example a frozen dataclass.
    """

    def __call__(self, texts: Sequence[str]) -> Matrix:
        """Return one row a text."""


@final
@dataclass(frozen=True, kw_only=True)
class Hashing:
    """Words and pairs of words, hashed into `width` columns and scaled to length 1; needs no download.

    English stop words are left out in the place of a TF-IDF weight, which would have to know all texts.

    >>> rain, again, football = Hashing()(["Rain in Spain", "rain, in SPAIN", "Football results"])
    >>> round(float(rain @ again), 3), round(float(rain @ football), 3)
    (1.0, 0.0)
    """

    width: int = 1024

    def __post_init__(self) -> None:
        if self.width < 1:
            raise ValueError(f"width must be at least 1; got {self.width}")

    def __call__(self, texts: Sequence[str]) -> Matrix:
        """Return one row a text; a text without words is a row of zeros."""
        from sklearn.feature_extraction.text import HashingVectorizer

        hasher = HashingVectorizer(n_features=self.width, ngram_range=(1, 2), stop_words="english")
        return np.asarray(hasher.transform(texts).todense(), dtype=np.float64)


@final
@dataclass(frozen=True, kw_only=True)
class SentenceTransformer:
    """A pretrained language model of the sentence-transformers package, downloaded at the first use.

    The paper takes the pooler output of bert-base-uncased; `model="bert-base-uncased"` gives the mean of
    its token vectors, which is close but not the same.
    """

    model: str = "sentence-transformers/all-MiniLM-L6-v2"

    def __call__(self, texts: Sequence[str]) -> Matrix:
        """Return one row a text."""
        try:
            from sentence_transformers import SentenceTransformer as Model
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "titles by a language model need sentence-transformers: pip install sentence-transformers "
                "(or take tercet.environments.embedders.Hashing(), which needs no download)"
            ) from error
        model: Any = Model(self.model)
        return np.asarray(model.encode(list(texts)), dtype=np.float64)


def principal(vectors: Matrix, known: Matrix, dims: int) -> Matrix:
    """Return vectors on the `dims` principal axes of the known ones, with zeros where these have fewer."""
    if not len(known):
        raise ValueError("principal axes need at least one known vector; got none")
    centre = known.mean(0)
    # R has the axes of the whole matrix in far fewer rows.
    _, spreads, axes = np.linalg.svd(np.linalg.qr(known - centre, mode="r"), full_matrices=False)
    # An axis along which nothing known varies is any direction; it would carry noise of unknown vectors.
    axes = axes[spreads > 1e-9 * max(spreads[0], 1e-9)][:dims]
    peaks = np.abs(axes).argmax(1)
    axes *= np.sign(axes[np.arange(len(axes)), peaks])[:, None]  # nor has an axis a sign of its own
    reduced = np.zeros((len(vectors), dims))
    reduced[:, : len(axes)] = (vectors - centre) @ axes.T
    return reduced


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Clicks:
    """The first click of each user on each article, by user and time; both are numbers from 0."""

    users: Ids
    articles: Ids
    times: Vector
    starts: Ids  # user i has the rows starts[i] to starts[i + 1]

    @classmethod
    def of(cls, users: Ids, articles: Ids, times: Vector) -> Self:
        """Sort clicks, and keep the first where one was logged several times."""
        order = np.lexsort([times, articles, users])
        pairs = np.column_stack([users, articles])[order]
        order = order[np.concatenate([[True], (pairs[1:] != pairs[:-1]).any(1)])[: len(order)]]
        order = order[np.lexsort([times[order], users[order]])]
        starts = np.searchsorted(users[order], np.arange(users.max(initial=-1) + 2))
        return cls(users=users[order], articles=articles[order], times=times[order], starts=starts)

    def before(self, user: int, now: float) -> tuple[Ids, Vector]:
        """Return the articles that a user clicked before now, and when."""
        begin, end = self.starts[user : user + 2]
        end = begin + np.searchsorted(self.times[begin:end], now)
        return self.articles[begin:end], self.times[begin:end]


def tastes(clicks: Clicks, now: float, *, articles: int, dims: int, like: Matrix | None = None) -> Matrix:
    """Return a vector of length 1 for each article that two users clicked before now, and zeros for others.

    Clicks older than `MEMORY` are left out. The vectors are the right singular vectors of the table of
    clicks, scaled on both sides by the root of its sums (Dhillon, "Co-clustering documents and words using
    bipartite spectral graph partitioning", KDD 2001). The first pair tells only how much an article was
    clicked and is left out, as is the length. The axes are turned to agree with `like`, earlier vectors of
    the same articles, because policies learn across the days.
    """
    from scipy.sparse import coo_array, diags_array
    from scipy.sparse.linalg import svds

    vectors = np.zeros((articles, dims))
    recent = (clicks.times < now) & (clicks.times >= now - MEMORY)
    _, rows, activity = np.unique(clicks.users[recent], return_inverse=True, return_counts=True)
    names, columns, popularity = np.unique(clicks.articles[recent], return_inverse=True, return_counts=True)
    axes = min(dims + 1, len(activity) - 1, len(names) - 1)
    if axes < 2:
        return vectors
    table = coo_array((np.ones(len(rows)), (rows, columns))).tocsr()
    scaled = diags_array(activity**-0.5) @ table @ diags_array(popularity**-0.5)
    # A start of our own keeps the result free of global randomness.
    _, strengths, right = svds(scaled, k=axes, v0=np.ones(min(scaled.shape)))
    found = right[np.argsort(-strengths)[1:]].T
    lengths = np.linalg.norm(found, axis=1)
    sound = (popularity > 1) & (lengths > 1e-9)
    vectors[names[sound], : axes - 1] = found[sound] / lengths[sound, None]
    return vectors if like is None else _turned(vectors, like)


def _turned(vectors: Matrix, like: Matrix) -> Matrix:
    """Return the rotation of vectors that is nearest to `like` (Schönemann, Psychometrika 1966)."""
    left, _, right = np.linalg.svd(vectors.T @ like)
    return vectors @ (left @ right)
