"""The page of all lessons, and the plans of courses, in each language.

Order: the page of lessons, its map, the page of courses.
"""

from html import escape
from typing import NamedTuple

from minitx import lessons
from minitx.analysis.machine.files import write
from minitx.lessons import notebook


class Words(NamedTuple):
    """What the two pages say in one language."""

    heading: str
    about: str
    map: str  # above the map
    after: str  # behind a question: {} are numbers of lessons
    courses: str
    plan: str  # heading of a course: {} weeks
    columns: tuple
    exercises: str  # what is done at home, in most weeks
    choose: str  # in the third
    defend: str  # before the last
    project: str  # the last week
    advice: str


WORDS = {
    "en": Words(
        "Lessons",
        "Each takes 15 to 30 minutes and stands alone: a question, an experiment to run and "
        "change, a picture, what chance would give, exercises with a check, and an open task. You "
        "need matrices and Python, no transformers. `minitx lesson` lists them, `minitx lesson 1` "
        "opens the first, and each page offers its notebook. Printed, a page is a handout of two "
        "to five sheets; what is folded stays out. For a class: [plans of a course](course.md).",
        "An arrow leads from a lesson to those that take it up. Whoever knows the words of a "
        "lesson can begin with it.",
        " (after {})",
        "Plans of a course",
        "{} weeks",
        ("week", "in class", "at home"),
        "exercises of both",
        "exercises; choose an open task",
        "finish the open task, write its null down",
        "Presentations: each group defends its open task against a null that another group names.",
        "Two lessons fill a session of 90 minutes. Let everyone write the bet down before the "
        "first cell runs, run the experiment together, then give ten minutes to the section on "
        "chance: what would you have claimed without it? Exercises check themselves, so they are "
        "homework; a solution is folded below each. In the third week every group of two or three "
        "chooses one of the open tasks. In the last one it shows the claim, the null, how many "
        "things it looked at before it chose, and the texts that it kept back. A negative result "
        "counts as much as a positive one. Nothing needs a network, a GPU, or a fast laptop. The "
        "plans keep the order of the [map](index.md); they are a proposal, so change them.",
    ),
    "ja": Words(
        "レッスン",
        "それぞれ 15 分から 30 分で、ほかを読んでいなくても始められます。"
        "問い、動かして変える実験、図、偶然ならどうなるか、答え合わせのできる練習問題、自由課題からなります。"
        "必要なのは行列と Python だけで、トランスフォーマーの知識は要りません。"
        "`minitx lesson 1 --lang ja` で最初のレッスンが開きます。"
        "ページを印刷すると 2〜5 枚の配布資料になり、たたまれた部分は省かれます。"
        "授業で使う方は、[授業計画](course.md)もご覧ください。",
        "矢印は、あるレッスンから、その内容を使うレッスンへ向かっています。"
        "言葉を知っていれば、どこから始めてもかまいません。",
        " ― 先に {}",
        "授業計画",
        "{} 週の授業",
        ("週", "授業", "宿題"),
        "両方の練習問題",
        "練習問題、自由課題を選ぶ",
        "自由課題を仕上げ、帰無モデルを書く",
        "発表。班ごとに、自由課題の主張を、ほかの班が挙げた帰無モデルから守ります。",
        "90 分の授業一回で、二つのレッスンを扱います。"
        "最初のセルを実行する前に、全員に予想を書いてもらいます。"
        "実験は一緒に動かし、「偶然ならどうなるか」には十分間を取ってください。"
        "これがなければ、何を主張していたでしょうか。"
        "練習問題は自分で答え合わせができるので、宿題に向いています。解答はそれぞれの下にたたんであります。"
        "3 週目に、2、3 人の班で自由課題を一つ選びます。"
        "最後の週には、主張と帰無モデル、選ぶまでにいくつ見たか、取っておいた文章を示して発表します。"
        "うまくいかなかった結果にも、うまくいった結果と同じ価値があります。"
        "ネットワークも GPU も速いパソコンも要りません。"
        "順番は[地図](index.md)に従っています。これは一つの案ですので、自由に変えてください。",
    ),
}
PLANS = {  # weeks -> the lessons of each but the last, in class
    6: ((1, 2), (20, 4), (7, 9), (18, 12), (21, 14)),
    12: (
        *((1, 20), (2, 3), (4, 18), (5, 6), (7, 9), (8, 11)),
        *((12, 10), (13, 16, 17), (19, 21), (22, 23), (14, 15)),
    ),
}
WIDE, HIGH, RADIUS = 120, 46, 16  # of the map: between columns, between rows, of a circle
HEAD = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0 0L8 4L0 8z" fill="currentColor"/></marker></defs>'
)


def write_pages(source):
    """Write both pages in each language into the folder `source`."""
    for language in notebook.LANGUAGES:
        folder = source / ("lessons" if language == "en" else f"lessons/{language}")
        folder.mkdir(parents=True, exist_ok=True)
        write(folder / "index.md", index(language))
        write(folder / "course.md", courses(language))


def index(language):
    """The page of all lessons: what they are, their map, a line for each."""
    words, every = WORDS[language], lessons.every(language)
    rows = []
    for lesson in every:
        numbers = ", ".join(map(str, lesson.after))
        after = words.after.format(numbers) if numbers else ""
        title = f"{lesson.number}. **[{lesson.title}]({lesson.name}.ipynb)**"
        rows.append(f"{title}  \n   {lesson.question}{after}")
    names = [lesson.name for lesson in every]
    tree = "\n".join(["```{toctree}", ":hidden:", "", *names, "course", "```"])
    parts = [f"# {words.heading}", words.about, drawn(every), words.map, "\n".join(rows), tree]
    return "\n\n".join(parts) + "\n"


def places(every):
    """{number: (column, row)} on the map: a lesson is right of all that it takes up."""
    columns, spots = {}, {}
    for lesson in every:
        column = 1 + max((spots[n][0] for n in lesson.after), default=-1)
        row = columns[column] = columns.get(column, -1) + 1
        spots[lesson.number] = column, row
    return spots


def drawn(every):
    """The map as SVG: a circle for each lesson, that leads to it, and arrows."""
    spots = places(every)
    most = max(row for _, row in spots.values())

    def centre(number):
        column, row = spots[number]
        n_rows = 1 + max(r for c, r in spots.values() if c == column)
        return 30 + WIDE * column, 24 + HIGH * (row + (most + 1 - n_rows) / 2)

    arrows, circles = [], []
    for lesson in every:
        x, y = centre(lesson.number)
        for before in lesson.after:
            arrows.append(arrow(*centre(before), x, y))
        circles.append(circle(lesson, x, y))
    width, height = 60 + WIDE * max(column for column, _ in spots.values()), 48 + HIGH * most
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    svg = f'<svg {size} role="group">{HEAD}{"".join(arrows)}{"".join(circles)}</svg>'
    return f'<div class="wide" tabindex="0">{svg}</div>'


def arrow(x0, y0, x1, y1):
    """A curve from one circle's edge to another's."""
    x0, x1 = x0 + RADIUS, x1 - RADIUS - 2
    half = (x0 + x1) / 2
    line = f"M{x0:g} {y0:g}C{half:g} {y0:g} {half:g} {y1:g} {x1:g} {y1:g}"
    look = 'fill="none" stroke="currentColor" opacity="0.55" marker-end="url(#arrow)"'
    return f'<path d="{line}" {look}/>'


def circle(lesson, x, y):
    """A lesson's number in a circle; its title is said, and shown when it is pointed at."""
    title = escape(f"{lesson.number}. {lesson.title}", quote=True)
    shape = f'<circle cx="{x:g}" cy="{y:g}" r="{RADIUS}" fill="none" stroke="currentColor"/>'
    number = f'<text x="{x:g}" y="{y + 5:g}" text-anchor="middle" fill="currentColor" '
    number += f'font-size="14">{lesson.number}</text>'
    link = f'<a href="{lesson.name}.html" aria-label="{title}">'
    return f'{link}<title>{title}</title><g pointer-events="all">{shape}{number}</g></a>'


def courses(language):
    """The page of courses: advice, then a table for each plan."""
    words, titles = WORDS[language], {}
    for lesson in lessons.every(language):
        titles[lesson.number] = f"[{lesson.number}. {lesson.title}]({lesson.name}.ipynb)"
    parts = [f"# {words.courses}", words.advice]
    for weeks, plan in PLANS.items():
        parts += [f"## {words.plan.format(weeks)}", table(weeks, plan, words, titles)]
    return "\n\n".join(parts) + "\n"


def table(weeks, plan, words, titles):
    """A plan as a table in Markdown: what is done in class, and at home."""
    rows = [f"| {' | '.join(words.columns)} |", "|---|---|---|"]
    task = {3: words.choose, len(plan): words.defend}
    for week, numbers in enumerate(plan, 1):
        titled = "<br>".join(titles[n] for n in numbers)
        rows.append(f"| {week} | {titled} | {task.get(week, words.exercises)} |")
    return "\n".join([*rows, f"| {weeks} | {words.project} | |"])
