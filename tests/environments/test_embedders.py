import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from tercet.environments.embedders import (
    MEMORY,
    Clicks,
    Embedder,
    Hashing,
    SentenceTransformer,
    principal,
    tastes,
)

TITLES = ["Rain in Spain", "Storm over Spain: the plain floods", "Football results", ""]


@pytest.mark.parametrize("order", [[3, 1, 0, 2], [2], [1, 1]])
def test_a_hashed_title_depends_on_its_own_text_only(order: list[int]) -> None:
    whole = Hashing()(TITLES)
    np.testing.assert_array_equal(Hashing()([TITLES[i] for i in order]), whole[order])


def test_hashed_titles_have_length_one_and_share_what_words_they_share() -> None:
    vectors = Hashing()(TITLES)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 1, 1, 0])
    assert vectors[0] @ vectors[1] > 0 == vectors[0] @ vectors[2]


def test_embedders_are_values() -> None:
    assert Hashing(width=8) == Hashing(width=8) != Hashing(width=9)
    for embedder in (Hashing(), SentenceTransformer()):
        assert isinstance(embedder, Embedder)
        assert hash(embedder) == hash(type(embedder)())
    with pytest.raises(ValueError, match="width must be at least 1"):
        Hashing(width=0)


def test_a_language_model_is_asked_for_its_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    class Model:
        def __init__(self, name: str) -> None:
            self.name = name

        def encode(self, texts: list[str]) -> np.ndarray:
            return np.array([[len(self.name), len(text)] for text in texts], dtype=np.float32)

    package = ModuleType("sentence_transformers")
    package.SentenceTransformer = Model  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", package)
    vectors = SentenceTransformer(model="tiny")(["", "abc"])
    np.testing.assert_array_equal(vectors, [[4.0, 0.0], [4.0, 3.0]])


def test_a_missing_language_model_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install sentence-transformers .*Hashing"):
        SentenceTransformer()(TITLES)


@pytest.mark.parametrize("count", [5, 40])
def test_principal_axes_agree_with_scikit_learn(count: int, rng: np.random.Generator) -> None:
    known, vectors = rng.normal(size=(count, 8)), rng.normal(size=(6, 8))
    ours = principal(vectors, known, 3)
    theirs = PCA(n_components=3).fit(known).transform(vectors)
    signs = np.sign((ours * theirs).sum(0))
    np.testing.assert_allclose(ours, theirs * signs, atol=1e-10)


def test_axes_beyond_the_rank_of_what_is_known_are_zero(rng: np.random.Generator) -> None:
    known = np.outer(np.arange(5.0), [1.0, 1.0, 0.0, 0.0])
    reduced = principal(rng.normal(size=(9, 4)), known, 3)
    assert reduced.shape == (9, 3)
    assert reduced[:, 0].any()
    assert not reduced[:, 1:].any()
    assert not principal(known, known[:1], 2).any()
    with pytest.raises(ValueError, match="at least one known vector"):
        principal(known, known[:0], 2)


def events(rng: np.random.Generator, count: int = 600) -> Clicks:
    """Draw the clicks of two camps of readers: one clicks even articles, the other odd ones, most of the time."""
    users = rng.integers(0, 40, count)
    strays = rng.random(count) < 0.15
    articles = 2 * rng.integers(0, 15, count) + (users + strays) % 2
    return Clicks.of(users, articles, rng.uniform(0, 100, count))


def test_the_first_click_on_an_article_counts_once() -> None:
    users, articles = np.array([1, 0, 1, 1]), np.array([7, 7, 7, 3])
    clicks = Clicks.of(users, articles, np.array([5.0, 2.0, 4.0, 4.5]))
    np.testing.assert_array_equal(clicks.users, [0, 1, 1])
    np.testing.assert_array_equal(clicks.articles, [7, 7, 3])
    np.testing.assert_array_equal(clicks.times, [2.0, 4.0, 4.5])


@given(now=st.floats(-1, 101), user=st.integers(0, 39))
def test_before_gives_what_a_user_clicked_earlier(now: float, user: int) -> None:
    clicks = events(np.random.default_rng(0))
    articles, times = clicks.before(user, now)
    mine = (clicks.users == user) & (clicks.times < now)
    assert set(articles.tolist()) == set(clicks.articles[mine].tolist())
    assert (times < now).all()


def test_articles_of_the_same_readers_have_similar_tastes(rng: np.random.Generator) -> None:
    vectors = tastes(events(rng), 100.0, articles=31, dims=1)
    np.testing.assert_allclose(np.abs(vectors[:30]), 1.0)
    assert (vectors[:30:2] == vectors[0]).all()
    assert (vectors[1:30:2] == -vectors[0]).all()
    assert not vectors[30].any()


def test_tastes_equal_a_dense_decomposition(rng: np.random.Generator) -> None:
    clicks = events(rng)
    table = np.zeros((40, 30))
    table[clicks.users, clicks.articles] = 1
    scaled = table / np.sqrt(np.outer(table.sum(1), table.sum(0)))
    found = np.linalg.svd(scaled)[2][1:4].T
    expected = found / np.linalg.norm(found, axis=1, keepdims=True)
    ours = tastes(clicks, 100.0, articles=30, dims=3)
    np.testing.assert_allclose(ours @ ours.T, expected @ expected.T, atol=1e-8)


def test_tastes_do_not_know_what_happens_at_or_after_now(rng: np.random.Generator) -> None:
    clicks = events(rng)
    late = clicks.times >= 50.0
    other = Clicks.of(clicks.users, np.where(late, 29 - clicks.articles, clicks.articles), clicks.times)
    np.testing.assert_array_equal(*(tastes(c, 50.0, articles=30, dims=4) for c in (clicks, other)))


def test_tastes_forget_what_is_too_old(rng: np.random.Generator) -> None:
    assert not tastes(events(rng), MEMORY + 101, articles=30, dims=4).any()


def test_new_tastes_are_turned_towards_the_old_and_keep_their_angles(rng: np.random.Generator) -> None:
    clicks = events(rng)
    plain = tastes(clicks, 100.0, articles=30, dims=3)
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    turned = tastes(clicks, 100.0, articles=30, dims=3, like=plain @ turn)
    np.testing.assert_allclose(turned, plain @ turn, atol=1e-8)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4])
def test_few_clicks_give_no_tastes_rather_than_an_error(count: int) -> None:
    numbers = np.arange(count)
    vectors = tastes(Clicks.of(numbers, numbers, numbers.astype(float)), 9.0, articles=4, dims=3)
    assert vectors.shape == (4, 3)
    assert not vectors.any()  # nobody shares an article


def test_importing_embedders_imports_nothing_heavy() -> None:
    code = "import tercet.environments.embedders, sys; print(*{'scipy', 'sklearn', 'pyarrow'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
