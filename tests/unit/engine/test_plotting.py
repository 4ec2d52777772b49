"""Figures: one look, marked where they are not the paper's, the same bytes for the same content."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from reproduction.engine import plotting


@pytest.fixture
def figure():
    with plotting.style():
        drawn, axes = plotting.panels(1, 2, height=2.0)
        axes[0].plot([0, 1], [0, 1])
        plotting.heat_map(
            axes[1], np.array([1.0, 10.0]), np.array([1.0, 10.0, 100.0]), np.eye(3, 2)
        )
        yield drawn
        plt.close(drawn)


@pytest.mark.parametrize(
    ("scale", "stand_ins", "lines"),
    [
        ("paper", [], 0),
        ("quick", [], 1),
        ("paper", ["digits of scikit-learn"], 1),
        ("quick", ["digits of scikit-learn", "a diabetes table"], 3),
    ],
)
def test_what_is_not_the_papers_says_so(figure, scale, stand_ins, lines):
    plotting.mark(figure, scale=scale, stand_ins=stand_ins)
    text = figure.get_supxlabel()
    assert len(text.splitlines()) == lines
    for words in stand_ins:
        assert f"Not the paper's data: {words}." in text


def test_what_is_said_of_a_figure_covers_no_legend(figure):
    figure.axes[0].plot([0, 1], label="a curve")
    legend = figure.legend(loc="outside lower center")
    plotting.mark(figure, scale="quick", stand_ins=["digits of scikit-learn"])
    figure.canvas.draw()
    words = [text for text in figure.texts if text.get_text().startswith("Not the paper's data")]
    assert len(words) == 1
    drawn = [each.get_window_extent() for each in (*words, legend)]
    assert not drawn[0].overlaps(drawn[1])
    for panel in figure.axes:
        assert not any(panel.get_tightbbox().overlaps(each) for each in drawn)


def test_what_is_said_of_a_figure_keeps_its_title(figure):
    figure.suptitle("Not a guarantee.")
    figure.legend(figure.axes[0].plot([0, 1]), ["a curve"], loc="outside lower center")
    plotting.mark(figure, scale="quick", stand_ins=[])
    assert figure.get_suptitle().startswith("Not a guarantee.\nReduced scale")


def test_cells_of_a_heat_map_are_centred_on_their_settings(figure):
    for low, high, settings in zip(
        *figure.axes[1].dataLim.get_points(), ([1, 10], [1, 10, 100]), strict=True
    ):
        assert [low, high] == pytest.approx([settings[0] / 10**0.5, settings[-1] * 10**0.5])


def test_a_users_own_defaults_change_nothing():
    before = plt.rcParams["axes.facecolor"]
    with plt.rc_context({"axes.facecolor": "red", "savefig.dpi": 7, "font.size": 30}):
        with plotting.style():
            own = {name: plt.rcParams[name] for name in ("axes.facecolor", "savefig.dpi")}
        assert plt.rcParams["font.size"] == 30
    assert own == {"axes.facecolor": before, "savefig.dpi": "figure"}


@pytest.mark.parametrize("suffix", ["pdf", "png", "svg"])
def test_the_same_figure_is_the_same_file(figure, tmp_path, suffix):
    files = [tmp_path / f"{name}.{suffix}" for name in ("first", "second")]
    for file in files:
        plotting.save(figure, file)
        # As in a build: laid out again, panels move by a rounding error.
        figure.set_layout_engine("none")
    assert files[0].read_bytes() == files[1].read_bytes()
    assert sorted(tmp_path.iterdir()) == files
