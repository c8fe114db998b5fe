"""The command line: every command end to end, and one clean line for whatever the user can mend."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import failing
import folders
import numpy as np
import pytest
from analysis_models import gpt2
from safetensors.numpy import load_file, save_file

import minitx
from minitx import weights
from minitx.analysis import __main__ as cli
from minitx.analysis import commands
from minitx.analysis.contract import options, registry
from minitx.analysis.maths import nulls
from minitx.analysis.pages import published
from minitx.loading.files import read_json
from minitx.words.text import UnknownWarning

ROOT = Path(__file__).parents[1]


def shell(*arguments, **environment):
    """One command in a process of its own."""
    return execute([sys.executable, "-m", "minitx.analysis", *map(str, arguments)], environment)


def execute(command, environment=None):
    """A process that has ended, with these variables beside this one's."""
    env = os.environ | (environment or {})
    return subprocess.run(
        command, cwd=ROOT, env=env, text=True, capture_output=True, timeout=200, check=False
    )


def complaint(capsys, *arguments):
    """The one line that a command leaves on stderr, with exit code 2."""
    assert cli.main(list(map(str, arguments))) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("minitx: ") and "Traceback" not in captured.err
    return captured.err


def output(capsys, *arguments):
    """What a command prints that succeeds."""
    assert cli.main(list(map(str, arguments))) == 0
    return capsys.readouterr().out


def test_list_names_every_experiment_and_model(capsys):
    text = output(capsys, "list")
    for experiment in registry.EXPERIMENTS.values():
        assert experiment.name in text and experiment.question in text
    assert all(f"  {name}\n" in text for name in weights.bundled())
    assert all(f"  {name}: {purpose}" in text for name, (_, purpose) in weights.KNOWN.items())


@pytest.mark.usefixtures("empty_figures")
def test_gaps_to_fill_have_guesses_and_no_loss(tmp_path, capsys):
    options = ["--sentence", "He <mask> out and <mask> home.", "--guesses", "3"]
    assert cli.main(["run", "predict", "tiny-roberta", *options, "--out", str(tmp_path)]) == 0
    arrays = np.load(tmp_path / "predict.npz")
    masks = []
    for pieces, row in zip(arrays["guess"], arrays["probability"]):
        masks.append(", ".join(f"“{x.strip()}” {p:.2f}" for x, p in zip(pieces, row)))
    assert f"Predictions for each mask: {masks[0]}; {masks[1]}. " in capsys.readouterr().out
    assert {*read_json(tmp_path / "predict.json")["headline"]} == {"certainty"}


def test_predict_says_its_first_guesses_and_what_stands_there():
    scores = dict.fromkeys(("loss", "loss_null", "first", "first_null"), 0.5)
    guess = np.array([[" He", "x"], [" was", " went"], ["\n", "y"]])
    r = scores | {"guess": guess, "here": np.array([" He", " went", "."])}
    r["guess_id"] = np.array([[3, 1], [4, 5], [6, 7]])
    r["truth_id"] = np.array([3, 5, 8])
    r["truth_rank"] = np.array([0, 1, 2])
    says = registry.get("predict").says
    assert "in brackets: “He”, “was” (“went”), “\n” (“.”)." in says(r)
    assert says(r).startswith("The top prediction is right at 50% of 3 positions (")
    many = {name: np.repeat(x, 41, axis=0) for name, x in r.items() if name not in scores}
    assert says(scores | many).count("“") == 40 and "“He”, …." in says(scores | many)


REFUSED = (
    "run positions tiny-robert --out new",
    "run attention tiny-roberta --text 'The cat sat.'",
    "run profiles,lags tiny-roberta --text 'The cat sat.'",
    "report tiny-roberta --text 'The cat sat.'",
    "explore tiny-roberta ' '",
    "trace tiny-roberta 'The cat sat.' --keep no --save out/new/trace.npz",
)


@pytest.mark.parametrize("command", REFUSED, ids=lambda command: " ".join(command.split()[:2]))
def test_a_refused_run_leaves_no_folder(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(shlex.split(command)) == 2
    assert [*tmp_path.iterdir()] == []


def test_a_refused_run_leaves_the_folder_that_was_there(tmp_path):
    command = ["run", "attention", "tiny-roberta", "--text", "The cat sat.", "--out"]
    assert cli.main([*command, str(tmp_path)]) == 2
    assert tmp_path.is_dir()


SAID = "The cat sat on the mat, and the dog ran after it."
AS_TEXT = {"attention": ["--tokens", "16", "--text"], "shapes": ["--sentence"]}


@pytest.mark.parametrize("experiment", AS_TEXT)
@pytest.mark.usefixtures("empty_figures")
def test_each_text_is_given_in_the_same_ways(experiment, tmp_path, piped):
    """Itself, in a file, or through -: where a text is read, and where documents are."""
    (tmp_path / "said").write_text(SAID)
    piped(SAID)
    command = ["run", experiment, "tiny-roberta", "--out", str(tmp_path), *AS_TEXT[experiment]]
    results = []
    for given in SAID, tmp_path / "said", "-":
        assert cli.main([*command, str(given)]) == 0
        results.append(dict(np.load(tmp_path / f"{experiment}.npz")))
    for name, x in results[0].items():
        assert np.array_equal(x, results[1][name]) and np.array_equal(x, results[2][name])


def arguments_of(parser):
    """Every argument of a parser and of the commands in it."""
    for action in parser._actions:
        if isinstance(action.choices, dict):
            for command in action.choices.values():
                yield from arguments_of(command)
        else:
            yield action


@pytest.mark.parametrize("command", [[], ["serve"], ["explore"]], ids=str)
def test_the_help_says_how_to_switch_a_head_off(command, capsys):
    with pytest.raises(SystemExit):
        cli.main([*command, "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert re.search("switch a head off|switches off heads|switches heads off", said)
    assert "minitx serve" in said


def test_the_help_says_the_same_of_each_text():
    ways = options.WAYS, options.ITSELF
    texts = [x for x in arguments_of(commands.parser()) if x.dest == "text"]
    assert len(texts) > 60 and not [x.help for x in texts if not any(map(x.help.count, ways))]
    said = [x for x in arguments_of(commands.parser()) if x.dest in ("sentence", "prompt")]
    assert len(said) > 6 and all(options.ITSELF in x.help for x in said)


def test_a_reader_who_has_seen_enough_is_no_error():
    process = execute(["sh", "-c", f"{sys.executable} -m analysis list | head -n 1"])
    assert process.stdout.startswith("experiments") and process.stderr == ""


@pytest.mark.parametrize(
    "command, said",
    [
        ("trace tiny-gpt2 'He went out.'", "interrupted"),
        ("report tiny-gpt2", "interrupted; repeat the command with --resume to continue"),
    ],
)
def test_an_interruption_is_one_line(tmp_path, capsys, monkeypatch, command, said):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(minitx, "load", failing.once(1, minitx.load, KeyboardInterrupt()))
    try:
        assert cli.main(shlex.split(command)) == 130
    except KeyboardInterrupt:  # would end the tests
        pytest.fail("it is not caught")
    assert capsys.readouterr().err == f"minitx: {said}\n"


def test_a_run_that_ctrl_c_interrupts_goes_on_with_resume(tmp_path):
    options = f"--documents 300 --tokens 64 --out {tmp_path}".split()
    code = (
        "import signal, sys; from minitx.analysis.__main__ import main; "
        "signal.signal(signal.SIGINT, signal.default_int_handler); "  # a job of a script ignores it
        f"sys.exit(main({['run', 'profiles', 'tiny-roberta', *options]}))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE, text=True
    )
    end = time.monotonic() + 100
    while not [*tmp_path.glob(".profiles.*.state.npz")] and time.monotonic() < end:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=100)[1]
    assert process.returncode == 130
    assert errors == "minitx: interrupted; repeat the command with --resume to continue\n"
    process = shell("run", "profiles", "tiny-roberta", *options, "--resume")
    assert process.returncode == 0 and "going on after" in process.stderr


def test_run_writes_figure_numbers_and_settings(tmp_path, capsys):
    options = f"--documents 2 --seed 4 --out {tmp_path}/new/out".split()
    assert cli.main(["run", "profiles", "tiny-roberta", *options]) == 0
    files = {path.name: path for path in (tmp_path / "new/out").glob("[!.]*")}
    assert set(files) == {"profiles.svg", "profiles.npz", "profiles.json"}
    stated = read_json(files["profiles.json"])
    expected = {"pairs": "", "text": "sample", "documents": 2, "tokens": 0, "seed": 4}
    expected |= {"clustered": "attention", "clusters": 6, "reach": 10}
    assert stated["settings"]["options"] == expected
    assert stated["headline"]["documents"]["value"] == 2
    assert {"value", "null", "means", "null_means"} == set(stated["headline"]["steady"])
    arrays = np.load(files["profiles.npz"], allow_pickle=False)
    assert arrays["profiles"].shape[0] == 2
    assert arrays["steady"] == stated["headline"]["steady"]["value"]
    svg = files["profiles.svg"].read_text(encoding="utf-8")
    assert registry.get("profiles").question in svg and "tiny-roberta" in svg
    assert "profiles.svg .npz .json written" in capsys.readouterr().out


@pytest.mark.usefixtures("empty_figures")
def test_results_have_a_folder_of_their_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = gpt2(tmp_path / "my-model")
    assert cli.main("run positions my-model --shuffles 3".split()) == 0
    assert (tmp_path / "out/my-model-positions/positions.json").is_file()
    text = str(ROOT / "LICENSE")
    assert cli.main(["run", "positions", str(folder) + "/", "--shuffles", "3", "--text", text]) == 0
    path = tmp_path / "out/my-model-positions/positions.json"
    stated = read_json(path)
    assert stated["settings"]["text"]["name"] == "LICENSE"


@pytest.mark.usefixtures("empty_figures")
def test_models_in_folders_of_one_name_have_results_of_their_own(tmp_path, monkeypatch, capsys):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for name in "AB":
        Path(name).mkdir()
    folders = [gpt2(Path(name)) for name in ("A/model", "B/model", "../model", "model")]
    for folder in folders:
        assert cli.main(["run", "positions", str(folder), "--shuffles", "3"]) == 0
    elsewhere = (tmp_path / "model").relative_to(tmp_path.anchor)
    for name in ("A/model", "B/model", "model", elsewhere):
        stated = read_json(Path(f"out/{name}-positions/positions.json"))
        model = "../model" if name == elsewhere else name
        assert stated["settings"]["model"] == model


def test_results_go_where_the_model_is_called():
    assert commands.inputs.place("tiny-bert") == "tiny-bert"
    assert commands.inputs.place("openai-community/gpt2") == "openai-community/gpt2"
    assert commands.inputs.place(".") == Path.cwd().name


@pytest.mark.usefixtures("empty_figures")
def test_list_run_and_published_answer_in_json(tmp_path, capsys):
    """Nothing else is on standard output."""
    answer = json.loads(output(capsys, "list", "--json"))
    assert list(answer["experiments"]) == [*registry.EXPERIMENTS]
    assert answer["experiments"]["positions"]["options"]["shuffles"] == 500
    assert answer["bundled"] == weights.bundled() and [*answer["to_download"]] == [*weights.KNOWN]
    options = ["--json", "--out", str(tmp_path)]
    assert cli.main(["run", "positions", "tiny-gpt2", "--shuffles", "3", *options]) == 0
    text = (tmp_path / "positions.json").read_text(encoding="utf-8")
    assert capsys.readouterr().out == text


@pytest.mark.parametrize("verdicts, status", [(["pass", "other checkpoint"], 0), (["fail"], 1)])
def test_published_counts_and_is_strict_where_that_is_asked(
    tmp_path, capsys, monkeypatch, verdicts, status
):
    rows = published.rows("tiny-gpt2", minitx.load("tiny-gpt2"), {})
    rows = [row | {"verdict": verdict} for row, verdict in zip(rows, verdicts)]
    monkeypatch.setattr(published, "rows", lambda *arguments: rows)

    def outcomes(*arguments):
        print("positions 0.1 s")  # as a line of progress
        return {}

    monkeypatch.setattr(published, "outcomes", outcomes)
    command = ["published", "tiny-gpt2", "--out", str(tmp_path)]
    assert f"\n{published.tally(rows)}\n" in output(capsys, *command)
    assert cli.main([*command, "--json", "--strict"]) == status
    captured = capsys.readouterr()
    assert json.loads(captured.out) == rows and captured.err == "positions 0.1 s\n"


def test_verdicts_are_counted():
    verdicts = ["pass"] * 3 + ["fail"] + ["other checkpoint"] * 2 + ["needs its text"]
    rows = [{"verdict": verdict} for verdict in verdicts]
    text = "3 of 4 claims hold; 2 of other checkpoints; 1 on texts that were not given"
    assert published.tally(rows) == text
    assert published.tally(rows[:3]) == "3 of 3 claims hold"
    assert {"pass", "fail", *published.UNJUDGED} == set(published.VERDICTS)


def test_the_same_command_gives_the_same_bytes(tmp_path):
    """In two processes with different hash seeds; profiles shuffles, clusters and uses threads."""
    for seed in "12":
        command = "run", "profiles", "tiny-roberta", "--documents", 4, "--out", tmp_path / seed
        process = shell(*command, PYTHONHASHSEED=seed)
        assert process.returncode == 0, process.stderr
    for path in (tmp_path / "1").glob("[!.]*"):
        assert path.read_bytes() == (tmp_path / "2" / path.name).read_bytes(), path.name


START = """
import sys
from minitx.analysis.__main__ import main
try:
    main(sys.argv[1:])
except SystemExit:
    parts = "stats", "fft", "optimize", "linalg", "cluster", "special"
    slow = *(f"scipy.{part}" for part in parts), "matplotlib", "huggingface_hub", "tokenizers"
    print([name for name in slow if name in sys.modules])
"""


@pytest.mark.parametrize("command", [["--help"], ["run", "--help"], ["run", "lags", "--help"]])
def test_help_comes_at_once(command):
    """It loads no part of SciPy, and nothing that draws, downloads or reads text."""
    assert execute([sys.executable, "-c", START, *command]).stdout.splitlines()[-1] == "[]"


def test_trace_shows_every_point_with_its_shape_and_the_budget(bundled, capsys):
    text = output(capsys, "trace", "tiny-roberta", "He went out.")
    trace = minitx.run(bundled, "He went out.")
    rows = {line.split()[0]: line for line in text.splitlines() if line.strip()}
    for key in trace:
        name = key if isinstance(key, str) else key[0]
        assert name in rows
    assert f"{np.abs(trace['embed']).mean():.4g}" in rows["embed"]
    assert f" {' '.join(map(str, trace['q', 0].shape))} " in rows["q"]
    size = f"{trace.nbytes / 1e6:.3f} MB"
    assert f"{size} recorded" in text and f"estimated beforehand: {size}" in text


def test_trace_keeps_and_saves_what_is_asked(bundled, tmp_path, capsys):
    file = tmp_path / "deep/trace.npz"
    options = ["--keep", "q,pattern.L1", "--save", str(file)]
    assert cli.main(["trace", "tiny-roberta", "He went out.", *options]) == 0
    arrays = np.load(file, allow_pickle=False)
    trace = minitx.run(bundled, "He went out.", keep=["q", ("pattern", 1)])
    queries = {f"q.L{i}" for i in range(bundled.config.n_layers)}
    assert set(arrays) == {"tokens", "valid", "pattern.L1"} | queries
    assert np.array_equal(arrays["pattern.L1"], trace["pattern", 1])
    assert "scores  " not in capsys.readouterr().out


@pytest.mark.parametrize("command", ["trace", "explore"])
def test_a_text_may_be_a_file_or_standard_input(tmp_path, piped, command):
    """The answers are those of the text itself, the time aside."""
    text = "He went out. She stayed."
    file = tmp_path / "text.txt"
    file.write_text(text + "\n")
    piped(text)
    written = tmp_path / ("x.npz" if command == "trace" else "explore.html")
    options = ["--save", written] if command == "trace" else ["--out", tmp_path]
    answers = []
    for given in (text, file, "-"):
        assert cli.main([*map(str, (command, "tiny-gpt2", given, *options))]) == 0
        answers.append(written.read_bytes())
    assert answers[0] == answers[1] == answers[2]


def test_trace_reads_a_pair_of_sentences(tmp_path, capsys):
    first, second = "The cat sat on the mat.", "The cat lay on the rug."
    file = tmp_path / "a.npz"
    given = "tiny-bert", first, "--second", second, "--keep", "pattern", "--save", str(file)
    said = output(capsys, "trace", *given)
    assert "23 tokens: [CLS] | the" in said and f"token types: {'0 ' * 11}{'1 ' * 11}1\n" in said
    model = minitx.load("tiny-bert")
    batch, trace = model.encode([(first, second)]), minitx.run(model, [(first, second)], "pattern")
    arrays = np.load(file)
    assert np.array_equal(arrays["tokens"], batch.tokens)
    assert np.array_equal(arrays["types"], batch.types)
    assert np.array_equal(arrays["pattern.L1"], trace["pattern", 1])
    given = "trace tiny-bart 1912-05-03 --source '3 May 1912' --second '4 May' --keep q.L0"
    assert "1 | 2 | </s> | </s> | 4 | " in output(capsys, *shlex.split(given))


def test_a_column_of_a_table_is_the_text(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("n,body\n1,He went out.\n2,She stayed.\n")
    for command in ("trace", "explore"):
        assert "name the text's with --column" in complaint(capsys, command, "tiny-gpt2", "t.csv")
        assert cli.main([command, "tiny-gpt2", "t.csv", "--column", "body"]) == 0
    asked = "trace tiny-gpt2 t.csv --column body --keep q.L0"
    assert "|  went |  out" in output(capsys, *asked.split())
    Path("d.csv").write_text("n,date\n1,3 May 1912\n")
    own = []
    for given in "'3 May 1912'", "d.csv --column date", "'3 May 1912' --second '4 May'":
        own.append(output(capsys, "decode", "tiny-bart", *shlex.split(given)))
    assert own[0] == own[1] == "1912-05-03\n"
    model = minitx.load("tiny-bart")
    source = model.encoder.tokenizer.encode("3 May 1912", "4 May")
    row = minitx.generate(model, n=20, source=source)
    assert own[2] == model.tokenizer.decode(row[1:]) + "\n"
    asked = "decode tiny-bart --ids x --second a"
    assert "TEXT, which is not given" in complaint(capsys, *asked.split())


@pytest.mark.parametrize("steps", [[], ["--steps"]])
def test_decode_refuses_settings_of_a_folder_unless_they_are_ignored(tmp_path, capsys, steps):
    shutil.copytree(weights.find("tiny-bart"), tmp_path, dirs_exist_ok=True)
    said = {"suppress_tokens": [3], "decoder_start_token_id": 2, "eos_token_id": 2}
    (tmp_path / "generation_config.json").write_text(json.dumps(said))
    asked = ["decode", str(tmp_path), "3 May 1912", *steps]
    assert "--ignore-settings, generates without it" in complaint(capsys, *asked)
    assert output(capsys, *asked, "--ignore-settings").startswith("1912-05-03\n")


@pytest.mark.parametrize("command", ["trace", "explore"])
def test_a_typed_separator_is_pointed_out(tmp_path, capsys, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    assert cli.main([command, "tiny-bert", "a cat [SEP] the dog"]) == 0
    said = capsys.readouterr().err
    assert said.startswith("minitx: [SEP] stands inside the text: its ids are those of a pair")
    assert "--second TEXT reads a pair" in said and said.count("\n") == 1
    assert cli.main([command, "tiny-bert", "a cat", "--second", "the dog"]) == 0
    assert cli.main([command, "tiny-roberta", "a cat</s></s>the dog"]) == 0  # it has no types
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("blank", ["", " \n"])
@pytest.mark.parametrize(
    "command, name",
    [
        ("trace tiny-roberta TEXT", "the text"),
        ("explore tiny-roberta TEXT", "the text"),
        ("trace tiny-roberta FILE", "the text 'empty.txt'"),
        ("explore tiny-gpt2 FILE", "the text 'empty.txt'"),
        ("explore tiny-gpt2 'a dog' --beside TEXT", "--beside"),
        ("atlas tiny-gpt2 --beside-text TEXT", "--beside-text"),
        ("trace tiny-bart 'a dog' --source TEXT", "--source"),
        ("run predict tiny-roberta --sentence TEXT", "--sentence"),
        ("run joint-space tiny-bert --sentence TEXT", "--sentence"),
        ("run mask-positions tiny-gpt2 --sentence TEXT", "--sentence"),
        ("run profiles tiny-gpt2 --text TEXT", "--text"),
        ("run profiles tiny-gpt2 --text FILE", "--text 'empty.txt'"),
        ("run predict tiny-gpt2 --text FILE", "--text 'empty.txt'"),
        ("run reviews tiny-gpt2 --text FILE", "--text 'empty.txt'"),
        ("report tiny-gpt2 --text TEXT", "--text"),
        ("published tiny-gpt2 --text FILE", "--text 'empty.txt'"),
    ],
)
def test_an_empty_text_is_refused_everywhere_alike(
    tmp_path, capsys, monkeypatch, blank, command, name
):
    monkeypatch.chdir(tmp_path)
    Path("empty.txt").write_text(blank)
    given = [{"TEXT": blank, "FILE": "empty.txt"}.get(x, x) for x in shlex.split(command)]
    assert complaint(capsys, *given) == f"minitx: {name} is empty; wanted a text to read\n"


def test_ids_are_read_in_place_of_a_models_own_text(tmp_path):
    (tmp_path / "ids").write_text("1 2 3\n4 5\n")
    words = "collect", "tiny-stories", "--ids", tmp_path / "ids", "--out", tmp_path / "out"
    assert cli.main([*map(str, words)]) == 0
    assert minitx.open_collection(tmp_path / "out").tokens.tolist() == [1, 2, 3, 4, 5]


def test_trace_saves_before_it_prints(tmp_path):
    """Nobody reads what it prints: the pipe is closed, as by `head` that has its lines."""
    reader, writer = os.pipe()
    os.close(reader)
    file = tmp_path / "trace.npz"
    command = [sys.executable, "-m", "minitx.analysis", "trace", "tiny-roberta", "He went out."]
    command += ["--keep", "q", "--save", str(file)]
    with os.fdopen(writer) as closed:
        process = subprocess.Popen(command, cwd=ROOT, stdout=closed, stderr=subprocess.PIPE)
    assert process.communicate(timeout=200)[1] == b"" and process.returncode == 1
    assert "q.L3" in np.load(file)


def test_trace_of_a_causal_model_averages_the_scores_that_are_seen(tmp_path, capsys):
    said = output(capsys, "trace", gpt2(tmp_path), "He went out.", "--keep", "scores")
    row = next(line for line in said.splitlines() if line.startswith("scores"))
    assert "inf" not in row.partition("  scaled")[0] and "nan" not in row


def test_fetch_prints_the_folder(capsys, monkeypatch):
    asked = []
    monkeypatch.setattr(weights, "fetch", lambda *a: asked.append(a) or Path("/cache/gpt2"))
    assert output(capsys, "fetch", "gpt2", "--revision", "main") == "/cache/gpt2\n"
    assert asked == [("gpt2", "main")]


MENDABLE = {  # command -> what is said in one line
    "run profle tiny-roberta": "unknown experiment 'profle'; did you mean profiles",
    "run tiny-bert --shuffles 3 positions": "positions is an experiment and comes before "
    "the model: minitx run positions tiny-bert",
    "run positions tiny-robert": "Did you mean tiny-roberta",
    "run positions tiny-roberta --shuffles 0": "shuffles is 0; wanted 1 or more",
    "run attention tiny-roberta --head L99H0": "'L99H0' is not a head of this model",
    "run profiles tiny-roberta --text missing.txt": "no text file 'missing.txt'",
    "run profiles tiny-roberta --text word": "or a text itself, of several",
    "trace tiny-roberta gone.txt": "no file 'gone.txt'; wanted the text itself, a",
    "run shapes tiny-roberta --sentence gone.txt": "no file 'gone.txt'; wanted",
    "run profiles tiny-roberta --text 'The cat sat.'": "has 8 tokens (2 of them special), 0 "
    "documents of 256 tokens each; wanted at least 1: --tokens 8, or a text of 256 tokens or more",
    "run attention tiny-roberta 'The cat sat.'": "unrecognized arguments: 'The cat sat.'; "
    "a text goes to --text: --text 'A dog ran.'",
    "run shapes tiny-roberta 'The cat sat.'": "a text goes to --sentence: --sentence 'A dog ran.'",
    "trace tiny-roberta x --keep patern": "patern",
    "trace tiny-roberta x --keep q.L99": "q",
    "trace tiny-roberta 'a \udcff b'": "the text is not valid UTF-8: '\\udcff' at character 2",
    "run joint-space tiny-bert --sentence 'a \udcff'": "--sentence is not valid UTF-8",
    "report tiny-gpt2 --text missing.txt": "no text file 'missing.txt'",
    "published tiny-gpt2 --tokens 100000": "--tokens 100000: this model reads 2 to 256 tokens",
    "report no/such/model/here": "no/such/model/here",
    "trace tiny-gpt2 'A dog' --save ''": "wanted the name of a file",
    "verify tiny-gpt2 tiny-gpt2 --junit ''": "wanted the name of a file",
    "probe tiny-gpt2 labels.csv --save ''": "wanted the name of a file",
    "examples tiny-stories --point ''": "unknown point ''",
    "steer tiny-stories A --towards 'A b' --away 'B a' --other ''": "file",
}


@pytest.mark.parametrize("command", MENDABLE)
def test_what_the_user_can_mend_is_one_line(capsys, tmp_path, monkeypatch, command):
    """An empty value, too, which is not as if none were given."""
    monkeypatch.chdir(tmp_path)
    assert MENDABLE[command] in complaint(capsys, *shlex.split(command))


def test_a_folder_that_cannot_be_written_is_noticed_before_the_work(capsys, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(
        commands.inputs, "load", lambda name: pytest.fail("the model was loaded first")
    )
    for command in (["run", "profiles"], ["report"]):
        text = complaint(capsys, *command, "tiny-roberta", "--out", tmp_path / "file/out")
        assert "Not a directory" in text and "file/out" in text and "Errno" not in text


def test_weights_with_nan_are_named(capsys, tmp_path):
    folder = gpt2(tmp_path / "broken")
    tensors = load_file(folder / "model.safetensors")
    tensors["wpe.weight"][3, 1] = np.nan
    save_file(tensors, folder / "model.safetensors")
    assert "W_pos" in complaint(capsys, "run", "positions", folder, "--out", tmp_path / "out")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("run positions tiny-roberta --shuffels 3", "unrecognized arguments: --shuffels"),
        ("run positions tiny-roberta --shuff 3", "unrecognized arguments: --shuff"),
        ("trace tiny-roberta x --sav y", "unrecognized arguments: --sav"),
        ("--vers", "required: COMMAND"),
        ("rnu", "invalid choice: 'rnu'"),
        ("", "required"),
    ],
)
def test_argparse_stops_wrong_flags(capsys, arguments, message):
    with pytest.raises(SystemExit, match="2"):
        cli.main(arguments.split())
    assert message in capsys.readouterr().err


def test_the_command_sets_one_blas_thread_unless_told_otherwise(monkeypatch):
    code = (
        "import os; from minitx.machine import threads; from minitx.analysis.__main__ import main; "
        "main(['run', 'predict', 'no-model']); "
        "print(threads.count(), os.environ['OPENBLAS_NUM_THREADS'])"
    )
    # conftest.py sets the first one, here and thereby in the processes that are started
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for environment, expected in (({}, "1 1"), ({"OPENBLAS_NUM_THREADS": "2"}, "2 2")):
        process = execute([sys.executable, "-c", code], environment)
        assert process.stdout.strip() == expected, process.stderr


def test_the_module_and_the_command_are_the_same():
    process = shell("list")
    assert process.returncode == 0 and "tiny-roberta" in process.stdout
    assert shell("run", "nothing").returncode == 2
    setup = (ROOT / "setup.cfg").read_text(encoding="utf-8")
    assert "minitx = minitx.analysis.__main__:main" in setup


def test_a_report_that_was_interrupted_takes_what_is_finished(tmp_path, capsys, monkeypatch):
    options = f"positions tiny-roberta --shuffles 5 --out {tmp_path}".split()
    assert cli.main(["run", *options]) == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr(nulls, "distribution", lambda *a: pytest.fail("it was run again"))
    assert cli.main(["run", *options, "--resume"]) == 0
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.undo()
    (tmp_path / "positions.npz").write_bytes(before["positions.npz"][:99])  # cut short: run again
    assert cli.main(["run", *options, "--resume"]) == 0
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}


def of_kinds(folder):
    """Two files with a text a line that differ in one word."""
    subjects = "girl boy dog man king cat woman bird bear fox queen child".split()
    for word in ("happy", "sad"):
        text = "".join(f"the {subject} was {word} .\n" for subject in subjects)
        (folder / f"{word}.txt").write_text(text)
    return ["--towards", str(folder / "happy.txt"), "--away", str(folder / "sad.txt")]


def test_steer_says_what_python_gives(tmp_path, capsys):
    files = of_kinds(tmp_path)
    asked = ["steer", "tiny-stories", "the dog was", *files, "--scale", "2", "--n", "5"]
    lines = output(capsys, *asked, "--other", "stories").splitlines()
    model = minitx.load("tiny-stories")
    texts = [Path(name).read_text().splitlines() for name in files[1::2]]
    kept = [[text for i, text in enumerate(side) if i % 4 != 3] for side in texts]
    vector = minitx.steering_vector(model, *kept, layer=2)
    row = minitx.generate(model, "the dog was", 5, edits=minitx.steer(vector, 2.0))
    assert lines[1] == f"steered: {model.tokenizer.decode(row)}"
    assert lines[0] != lines[1].replace("steered", "as it is")
    assert f"{vector.share:.1%} of the stream" in lines[4] and f"{vector.null:.1%}" in lines[4]
    assert lines[3].startswith("made of 9 texts towards and 9 away; 3 and 3 others are held out")
    effects = [vector.effect(side[3::4], 2.0) for side in texts]
    assert f"not part of the vector: {effects[0].change:+.3f} nats a token" in lines[5]
    low, high = np.sort(effects[0].untrained)[[0, -1]]
    assert f"random weights {low:+.3f} to {high:+.3f})" in lines[5]
    assert lines[7].startswith("log-probability of other text, the price: ")
    contrast = vector.contrast(*effects)
    assert lines[9].startswith(f"{contrast.verdict}: texts") and f"{contrast.null:+.3f}" in lines[9]


def test_steer_of_two_texts_is_undecided_and_tells_unknown_words_once(capsys):
    sides = "--towards", "the girl was happy zeppelin", "--away", "the girl was sad robot"
    with warnings.catch_warnings():
        warnings.simplefilter("default", UnknownWarning)
        assert cli.main(["steer", "tiny-stories", "the quark was", *sides, "--n", "3"]) == 0
    said = capsys.readouterr()
    assert "made of 1 texts towards and 1 away; 0 and 0 others are held out" in said.out
    assert said.out.splitlines()[-1].startswith("undecided: a vector needs six texts")
    assert said.err.splitlines() == [
        "minitx: zeppelin, robot, quark are not in this model's vocabulary; read as <unk>"
    ]


def test_steer_refuses_in_one_line(tmp_path, capsys):
    files = of_kinds(tmp_path)
    assert "causal" in complaint(capsys, "steer", "tiny-bert", "the dog", *files)
    asked = "steer", "tiny-gpt2", "the dog", *files, "--layer", "9"
    assert "no point ('resid_pre', 9)" in complaint(capsys, *asked)


@pytest.mark.parametrize(
    "given, near",
    [
        ("predict tiny-gpt2", "it is an experiment: minitx run predict"),
        ("stear tiny-gpt2 a", "did you mean steer"),
        ("trace tiny-gpt2 a --kep q", "--kep; did you mean --keep"),
        ("collect tiny-gpt2 --docments=4", "--docments; did you mean --documents?"),
        ("steer tiny-gpt2 a --towards a --away b --token lst", "last?"),
    ],
)
def test_a_command_or_flag_that_is_close_is_told(given, near, capsys):
    with pytest.raises(SystemExit):
        cli.main(given.split())
    assert near in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main("trace tiny-gpt2 a --zzz".split())
    assert "did you mean" not in capsys.readouterr().err


def test_probe_of_a_table_says_what_python_says(tmp_path, capsys):
    """The last word is the label: embeddings tell it; .jsonl with names of its own too."""
    nouns, moods = "girl boy dog man king cat woman bird".split(), ("sad", "happy", "tired")
    rows = [{"t": f"the {noun} was {mood}", "m": mood} for noun in nouns for mood in moods]
    table = tmp_path / "t.jsonl"
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = ["probe", "tiny-stories", str(table), "--column", "t", "--label", "m", "--out"]
    saved = tmp_path / "p.safetensors"
    asked += [str(tmp_path / "out"), "--at", "embed,resid_post.L1", "--save", str(saved)]
    lines = output(capsys, *asked).splitlines()
    assert lines[0].startswith("24 texts, labels happy, sad, tired")
    texts, labels = [row["t"] for row in rows], [row["m"] for row in rows]
    probe = minitx.fit_probe("tiny-stories", texts, labels, at=("resid_post", 1))
    assert probe.classes == ["happy", "sad", "tired"]
    assert lines[2].startswith(f"resid_post.1: {probe.accuracy:.1%} [")
    assert lines[2].endswith(f"random weights {probe.untrained:.1%}; {probe.verdict}")
    numbers = json.loads((tmp_path / "out" / "probe.json").read_text())
    assert [x["point"] for x in numbers] == ["embed", "resid_post.1"]
    assert "random weights" in (tmp_path / "out" / "probe.svg").read_text()
    assert minitx.Probe.from_file(saved, "tiny-stories").point == "embed"  # as right as the other
    said = complaint(capsys, *asked[:3], "--column", "t")
    assert "expected one for each text" in said and "that which --label names" in said
    few = tmp_path / "few.csv"
    few.write_text("text,label\nA dog,x\nA cat,y\n")
    assert "expected 4 or more of each class" in complaint(capsys, "probe", "tiny-gpt2", few)


OWN = [  # commands whose output is what they read; m is a model's folder, t.txt a text
    "trace tiny-gpt2 t.txt --save t.txt",
    "trace m '1 2' --save m/config.json",
    "probe tiny-gpt2 t.txt --save ./t.txt",
    "examples tiny-gpt2 --text t.txt --out t.txt",
    "verify m tiny-gpt2 --junit m/model.safetensors",
    "train m --text t.txt --steps 1 --context 4 --batch 1 --out m",
    "tune tiny-gpt2 --steps 1 --batch 1 --documents 20 --tokens 32 --out m",
]


@pytest.mark.parametrize("command", OWN)
def test_what_is_read_is_not_written_over(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(folders.GOLDEN / "gpt2-causal", "m")
    Path("t.txt").write_text("A dog ran.\n" * 20)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()}
    said = complaint(capsys, *shlex.split(command))
    assert "is a file that this command reads" in said or "holds a checkpoint that is no" in said
    assert before == {path: path.read_bytes() for path in before}


def test_memory_that_is_not_there_is_one_line(monkeypatch, capsys):
    def fail(*_, **__):
        raise MemoryError("Unable to allocate 9 TiB")

    monkeypatch.setattr(minitx, "run", fail)
    assert "out of memory. Unable to allocate" in complaint(capsys, "trace", "tiny-gpt2", "A dog")


def test_collect_writes_what_python_opens(tmp_path, capsys):
    out = tmp_path / "c"
    asked = "collect tiny-gpt2 --keep resid_post.L1,z --documents 5".split()
    said = output(capsys, *asked, "--tokens", "16", "--out", out)
    collection = minitx.open_collection(out)
    n = len(collection)
    assert f"5 documents, {n} tokens" in said and "MB in" in said and n <= 80
    ids = collection.tokens[collection.documents == 4]
    x = minitx.run("tiny-gpt2", ids, ("resid_post", 1))["resid_post", 1][0]
    assert np.array_equal(collection["resid_post", 1][collection.documents == 4], x)
    said = output(capsys, "plan", *asked, "--tokens", "16", "--out", tmp_path / "none")
    assert f"5 documents, {n} tokens" in said
    assert not (tmp_path / "none").exists()
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    asked[3] = "blocks.1.hook_resid_post,attn.hook_z"  # the same by the names of TransformerLens
    assert cli.main([*asked, "--tokens", "16", "--out", str(out)]) == 0  # it is whole already
    assert before == {path.name: path.read_bytes() for path in out.iterdir()}
    capsys.readouterr()
    asked = "collect", "tiny-bert", "--documents", "5", "--tokens", "16", "--out", str(out)
    assert "was begun with another model" in complaint(capsys, *asked)
    assert "reads pictures" in complaint(capsys, "collect", "tiny-vit")
    assert "[B H T S]" in complaint(capsys, "collect", "tiny-gpt2", "--keep", "pattern")


def test_examples_of_ids_and_of_a_column(tmp_path, capsys):
    (tmp_path / "ids.txt").write_text("3 4 5 6\n7 8 9\n")
    page = tmp_path / "page.html"
    asked = ["examples", "tiny-gpt2", "--ids", str(tmp_path / "ids.txt"), "--n", "1"]
    said = output(capsys, *asked, "--point", "z.L1", "--feature", "1,2", "--out", page)
    rows = [[3, 4, 5, 6], [7, 8, 9]]
    examples = minitx.top_examples("tiny-gpt2", rows, ("z", 1), (1, 2), n=1, untrained=True)
    assert f"; with random weights: {examples.untrained[0]:.4g}" in said
    assert said.startswith(repr(examples)) and "Texts drawn at random" in page.read_text()
    (tmp_path / "t.csv").write_text("a,body\n1,The dog ran.\n2,She was sad.\n")
    table = ["examples", "tiny-gpt2", "--text", str(tmp_path / "t.csv"), "--column", "body"]
    said = output(capsys, *table, "--feature", "3")
    assert "number 3 of ('post', 3): the largest in 2 of 2 texts" in said
    wrong = "examples", "tiny-gpt2", "--feature", "1,2,3"
    assert "--feature is '1,2,3'" in complaint(capsys, *wrong)
    assert "encoder-decoder" in complaint(capsys, "examples", "tiny-bart")


@pytest.mark.parametrize(
    ("words", "completed"),
    [(["minitx", "rep"], "report"), (["minitx", "steer", "--tow"], "--towards")],
)
def test_a_shell_completes_commands_and_flags(words, completed, capsys, tmp_path):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--print-completion", "bash"])
    script = tmp_path / "minitx"
    script.write_text(capsys.readouterr().out)
    before = words[-2]
    lines = f"""source {script}; COMP_WORDS=({" ".join(words)}); COMP_CWORD={len(words) - 1}
        _shtab_minitx minitx {words[-1]} {before}; echo "${{COMPREPLY[@]}}" """
    done = subprocess.run(["bash", "-c", lines], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [completed]


def test_completion_names_its_package(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert cli.main(["--print-completion", "zsh"]) == 2
    assert "pip install 'minitx[completion]'" in capsys.readouterr().err
