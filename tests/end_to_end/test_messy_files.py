"""Files as people have them: several text columns, copies of the labels, repeated texts."""

import json

import numpy as np
import pytest

from support.files import program, read_csv, write_csv
from unflip.datasets import make_messages

N = 300


@pytest.fixture(scope="module")
def messages():
    """Return texts, true and noisy labels."""
    texts, y = make_messages(N, random_state=0)
    names = np.array(["billing", "delivery"])
    flipped = np.random.default_rng(0).random(N) < 0.15
    return texts, names[y], names[np.where(flipped, 1 - y, y)]


def answer_of(*arguments):
    return json.loads(program(*arguments, "--json").stdout)


def test_several_columns_of_text_are_joined(messages, tmp_path):
    texts, _, observed = messages
    halves = [text.split(" ", 2) for text in texts]
    titles, bodies = [" ".join(half[:2]) for half in halves], [half[2] for half in halves]
    split = write_csv(tmp_path / "split.csv", title=titles, body=bodies, label=observed)
    whole = write_csv(
        tmp_path / "whole.csv",
        text=[f"{title}\n{body}" for title, body in zip(titles, bodies, strict=True)],
        label=observed,
    )
    both = ("--text", "title", "--text", "body")
    answer = answer_of("audit", split, "--label", "label", *both)
    expected = answer_of("audit", whole, "--label", "label", "--text", "text")
    assert answer["features"]["columns"] == ["title", "body"]
    assert [line["row"] for line in answer["suspects"]] == [
        line["row"] for line in expected["suspects"]
    ]
    shown = program("audit", split, "--label", "label", *both).stdout
    assert "the words of columns 'title', 'body'" in " ".join(shown.split())
    # The saved model reads both columns again.
    model = tmp_path / "m.skops"
    program("fit", split, "--label", "label", *both, "--out", model)
    program("predict", model, split, "--out", tmp_path / "p.csv")
    predicted = [line["predicted"] for line in read_csv(tmp_path / "p.csv")]
    assert np.mean(np.array(predicted) == messages[1]) > 0.85
    twice = program(
        "audit", split, "--label", "label", "--text", "body", "--text", "body", code=2
    ).stderr
    assert "--text body is given twice" in twice


def test_a_copy_of_the_labels_is_noted(messages, tmp_path):
    _, true, observed = messages
    rng = np.random.default_rng(0)
    score = rng.normal(size=N).round(4) + 2.0 * (true == "delivery")
    codes = (observed == "delivery").astype(int)
    nearly = np.where(np.arange(N) == 7, 1 - codes, codes) + 5
    path = write_csv(
        tmp_path / "leak.csv",
        score=score,
        noise=rng.integers(2, size=N),
        copy=codes,
        nearly=nearly,
        label=observed,
    )
    notes = answer_of("audit", path, "--label", "label")["notes"]
    named = [name for name in ("score", "noise", "copy", "nearly") if f"{name!r}" in str(notes)]
    assert named == ["copy", "nearly"]
    assert "ignore it with --ignore copy." in str(notes)
    ignored = ("--ignore", "copy", "--ignore", "nearly")
    assert "copy" not in str(answer_of("audit", path, "--label", "label", *ignored)["notes"])


@pytest.mark.parametrize("options", [(), ("--normalise-labels",)])
def test_a_copy_of_the_labels_is_noted_whatever_its_spelling(messages, tmp_path, options):
    rng = np.random.default_rng(0)
    spelled = np.where(rng.random(N) < 0.1, np.char.title(messages[2]), messages[2])
    path = write_csv(
        tmp_path / "leak.csv", score=rng.normal(size=N).round(4), copy=spelled, label=spelled
    )
    notes = answer_of("audit", path, "--label", "label", *options)["notes"]
    assert "'copy' has one value for each label" in str(notes)


def test_options_that_mend_the_audit_are_the_first_steps(messages, tmp_path):
    rng = np.random.default_rng(0)
    path = write_csv(
        tmp_path / "d.csv",
        score=rng.normal(size=N).round(4),
        message=[f"{text} {row}" for row, text in enumerate(messages[0])],
        label=np.where(rng.random(N) < 0.1, np.char.title(messages[2]), messages[2]),
    )

    def steps(*options):
        output = program("audit", path, "--label", "label", *options).stdout
        return " ".join(output.split("Next steps:")[1].split())

    spelling = (
        "- Spell labels alike that differ only by case or spaces, 'Billing' ('billing'), "
        "'Delivery' ('delivery'): add --normalise-labels. "
    )
    text = "- Column 'message' looks like text: add --text message to use its words."
    assert steps().startswith(spelling + text)
    assert steps("--normalise-labels").startswith(text)
    mended = steps("--normalise-labels", "--text", "message")
    assert "Spell" not in mended
    assert "looks like" not in mended


def test_repeated_texts_are_noted(messages, tmp_path):
    texts, _, observed = messages
    path = write_csv(tmp_path / "t.csv", text=[*texts[:200], *texts[:100]], label=observed)
    notes = " ".join(answer_of("audit", path, "--label", "label", "--text", "text")["notes"])
    n_copies = N - len(set(texts[:200]))
    assert f"{n_copies} of 300 texts repeat another one" in notes


def test_labels_that_differ_by_case_or_spaces_become_one(messages, tmp_path):
    texts, true, observed = messages
    odd = np.arange(N) % 3 == 0
    spelled = np.where(odd, np.char.add(np.char.upper(observed), " "), observed)
    truth = np.where(np.arange(N) % 10 == 0, np.char.title(true), "")
    path = write_csv(tmp_path / "s.csv", text=texts, label=spelled, truth=truth)
    plain = write_csv(
        tmp_path / "plain.csv", text=texts, label=observed, truth=np.char.lower(truth)
    )
    options = ("--label", "label", "--text", "text")
    notes = " ".join(answer_of("audit", path, *options)["notes"])
    assert "'BILLING', in " in notes
    assert "spell them alike, as --normalise-labels of audit, fit and apply does." in notes
    for more in ((), ("--trusted", "truth")):
        answer = answer_of("audit", path, *options, *more, "--normalise-labels")
        expected = answer_of("audit", plain, *options, *more)
        assert answer["labels"] == expected["labels"]
        assert answer["suspects"] == expected["suspects"]
        assert not [note for note in answer["notes"] if "case or spaces" in note]
    # Decisions and their commands work with the same option.
    suspects = tmp_path / "suspects.csv"
    program("audit", path, *options, "--normalise-labels", "--suspects", suspects)
    lines = read_csv(suspects)
    for line in lines:
        line["decision"] = "accept" if line["part"] == "suspect" else ""
    decisions = write_csv(
        tmp_path / "d.csv", **{key: [line[key] for line in lines] for key in lines[0]}
    )
    copy, model = tmp_path / "clean.csv", tmp_path / "m.skops"
    apply = ("apply", path, decisions, "--out", copy, "--normalise-labels")
    program(*apply, *options)
    n_changed = sum(line["part"] == "suspect" for line in lines)
    after = np.array([line["label"] for line in read_csv(copy)])
    assert (after != spelled).sum() == n_changed > 0
    assert "needs the column of labels" in program(*apply, code=2).stderr
    program("fit", path, *options, "--decisions", decisions, "--normalise-labels", "--out", model)


def test_values_that_a_model_does_not_know_are_counted(messages, tmp_path):
    texts, _, observed = messages
    country = np.where(np.arange(N) % 2, "FR", "DE")
    path = write_csv(tmp_path / "d.csv", text=texts, country=country, label=observed)
    model = tmp_path / "m.skops"
    program("fit", path, "--label", "label", "--text", "text", "--use", "country", "--out", model)
    new = write_csv(
        tmp_path / "new.csv",
        text=["", " ", *texts[:6]],
        country=["ZZ", "", "ZZ", "FR", "DE", "XX", "FR", "DE"],
    )
    notes = " ".join(program("predict", model, new, "--json").stderr.split())
    assert "column 'country' that the model does not know: 3 of 8 ('ZZ', 'XX')." in notes
    assert "Rows without text in 'text': 2 of 8." in notes
    assert not program("predict", model, path, "--json").stderr
