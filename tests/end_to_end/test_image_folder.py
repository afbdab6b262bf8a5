"""The command line with a folder of images, with a sub-folder for each class."""

import json
import shutil

import numpy as np
import pytest

from support.files import program, read_csv, write_csv

Image = pytest.importorskip("PIL.Image", reason="images need Pillow")

N_IMAGES = 60  # of each class
N_WRONG = 12  # of each class
CLASSES = ("disc", "stripes")


def drawn(label, rng):
    """Return a disc or stripes, at a random place and in a random colour."""
    y, x = np.mgrid[:40, :40]
    centre = rng.integers(12, 28, 2)
    shape = (
        np.hypot(x - centre[0], y - centre[1]) < 10 if label == "disc" else (x + centre[0]) % 10 < 5
    )
    pixels = np.where(shape[..., np.newaxis], rng.integers(150, 256, 3), rng.integers(0, 100, 3))
    return Image.fromarray(pixels.astype(np.uint8))


def fill(folder, sub_folders=True):
    """Write images, of which some are in the folder of the other class; return the wrong ones."""
    rng = np.random.default_rng(0)
    wrong = set()
    for i in range(2 * N_IMAGES):
        true = CLASSES[i % 2]
        is_wrong = i < 2 * N_WRONG
        label = CLASSES[(i + is_wrong) % 2]
        name = f"{label}/{i:03}.png" if sub_folders else f"{true}-{i:03}.png"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        drawn(true, rng).save(folder / name)
        if is_wrong:
            wrong.add(name)
    return wrong


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images") / "photos"
    return folder, fill(folder)


def decided(table, wrong, path):
    """Write the decisions of a reviewer who knows the truth; return how many are accepted."""
    lines = [line for line in table if line["part"] == "suspect"]
    decisions = ["accept" if line["id"] in wrong else "reject" for line in lines]
    columns = {name: [line[name] for line in lines] for name in lines[0] if name != "decision"}
    write_csv(path, **columns, decision=decisions)
    return decisions.count("accept")


def test_from_audit_to_predictions(photos, tmp_path):
    folder, wrong = photos
    page, suspects = tmp_path / "report.html", tmp_path / "suspects.csv"
    text = " ".join(program("audit", folder, "--out", page, "--suspects", suspects).stdout.split())
    assert "120 rows, labels 60 'disc', 60 'stripes'." in text
    assert "Features: edges and colours of the images, 436 dimensions." in text
    assert "--out clean.csv" in text
    assert "--label" not in text
    assert "--id" not in text
    table = read_csv(suspects)
    assert {line["id"] for line in table if line["part"] == "suspect"} == wrong
    assert all(line["proposed"] != line["id"].split("/")[0] for line in table)
    assert page.read_text(encoding="utf-8").count("disc/001.png") >= 1

    decisions = tmp_path / "decisions.csv"
    n_changed = decided(table, wrong, decisions)
    clean = tmp_path / "clean.csv"
    text = program("apply", folder, decisions, "--out", clean).stdout
    assert f"{n_changed} labels of column 'label' changed" in text
    corrected = {line["file"]: line["label"] for line in read_csv(clean)}
    assert len(corrected) == 2 * N_IMAGES
    assert {file for file, label in corrected.items() if label != file.split("/")[0]} == wrong

    model = tmp_path / "model.skops"
    program("fit", folder, "--decisions", decisions, "--out", model)
    new = tmp_path / "new"
    fill(new, sub_folders=False)
    predictions = tmp_path / "predictions.csv"
    program("predict", model, new, "--out", predictions)
    lines = read_csv(predictions)
    assert len(lines) == 2 * N_IMAGES
    assert all(line["id"].startswith(line["predicted"]) for line in lines)


def test_decisions_follow_the_file_when_others_are_added(photos, tmp_path):
    folder, wrong = photos
    copy = tmp_path / "photos"
    shutil.copytree(folder, copy)
    program("audit", copy, "--suspects", tmp_path / "suspects.csv")
    decided(read_csv(tmp_path / "suspects.csv"), wrong, tmp_path / "decisions.csv")
    drawn("disc", np.random.default_rng(1)).save(copy / "disc" / "000-new.png")
    program("apply", copy, tmp_path / "decisions.csv", "--out", tmp_path / "clean.csv")
    corrected = {line["file"]: line["label"] for line in read_csv(tmp_path / "clean.csv")}
    assert {file for file, label in corrected.items() if label != file.split("/")[0]} == wrong


def test_files_that_are_no_images_are_named_and_left_out(photos, tmp_path):
    folder = tmp_path / "photos"
    shutil.copytree(photos[0], folder)
    whole = next((folder / "disc").glob("*.png"))
    (folder / "disc" / "half.png").write_bytes(whole.read_bytes()[:100])
    (folder / "stripes" / "page.jpg").write_text("<html></html>")
    (folder / "stripes" / ".hidden.png").write_text("hidden")
    (folder / "notes.txt").write_text("notes")
    done = program("audit", folder, "--json")
    result = json.loads(done.stdout)
    assert result["rows"] == 2 * N_IMAGES
    assert (
        "1 file is ignored, because the name does not end as images do: notes.txt." in done.stderr
    )
    assert "cannot be read, and are left out: 2 of 122, disc/half.png (it is damaged" in done.stderr
    assert "stripes/page.jpg (it has none of the formats" in done.stderr
    assert "hidden" not in done.stderr
    assert len(result["notes"]) >= 2


def test_images_beside_the_sub_folders_get_a_proposed_label(photos, tmp_path):
    folder = tmp_path / "photos"
    shutil.copytree(photos[0], folder)
    for label in CLASSES:
        drawn(label, np.random.default_rng(5)).save(folder / f"{label}.png")
    proposals = json.loads(program("audit", folder, "--json").stdout)["unlabelled"]
    assert {line["id"]: line["proposed"] for line in proposals} == {
        f"{label}.png": label for label in CLASSES
    }


def test_the_class_is_the_first_of_several_sub_folders(photos, tmp_path):
    for path in photos[0].rglob("*.png"):
        deeper = tmp_path / "photos" / path.parent.name / "2024" / "may"
        deeper.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, deeper)
    result = json.loads(program("audit", tmp_path / "photos", "--json").stdout)
    assert result["labels"] == {"disc": N_IMAGES, "stripes": N_IMAGES}
    assert result["suspects"][0]["id"].count("/2024/may/") == 1


def test_folders_that_cannot_be_audited(photos, tmp_path):
    flat = tmp_path / "flat"
    flat.mkdir()
    shutil.copy(next(photos[0].rglob("*.png")), flat)
    splits = tmp_path / "splits"
    for name in ("train", "test"):
        shutil.copytree(photos[0], splits / name)
    (tmp_path / "none").mkdir()
    broken = tmp_path / "broken"
    for label in CLASSES:
        (broken / label).mkdir(parents=True)
        (broken / label / "a.png").write_text("no image")
    for folder, message in {
        flat: "needs at least two sub-folders with images, but has 0",
        splits: "look like parts of the data, not like classes (test, train)",
        tmp_path / "none": "is a folder without images",
        broken: "has no image that can be read: disc/a.png",
    }.items():
        assert message in program("audit", folder, code=2).stderr
    train = json.loads(program("audit", splits / "train", "--json").stdout)
    assert train["rows"] == 2 * N_IMAGES


def test_models_of_images_and_of_columns_are_not_mixed_up(photos, tmp_path):
    rng = np.random.default_rng(0)
    labels = np.repeat(["ham", "spam"], 20)
    numbers = write_csv(tmp_path / "d.csv", x=rng.normal(size=40) + (labels == "ham"), label=labels)
    program("fit", photos[0], "--out", tmp_path / "images.skops")
    program("fit", numbers, "--label", "label", "--out", tmp_path / "numbers.skops")
    done = program("predict", tmp_path / "images.skops", numbers, "--json", code=2)
    assert "the model needs a folder of images" in done.stderr
    done = program("predict", tmp_path / "numbers.skops", photos[0], "--json", code=2)
    assert "has no column 'x'" in done.stderr


def test_the_copy_is_a_table_of_files(photos, tmp_path):
    done = program("apply", photos[0], "decisions.csv", "--out", tmp_path / "clean", code=2)
    assert "clean must end in .csv" in done.stderr
