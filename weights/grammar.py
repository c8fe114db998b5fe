"""Words and frames of the stories that tiny-stories was trained on: plain data (stories.py draws).

A frame is a sentence with slots. `{name1}` is a word of the table `name`, another one for each
number; `{name1/name2}` is the first in the clean text and the second in the corrupt one, and so is
`{is/are}`, whose words are in no table. `=` stands before a word that the text before it tells; the
last of them is asked for. `#` is a number that `recalled` fills in. Tables with the same number of
words that PARALLEL names together share their order: `{thing1}` and `{things1}` are one thing.

Read downward: words, frames of each kind, plain sentences.
"""

from itertools import permutations

TABLES = {
    "man": "Adam Alex Andrew Anthony Ben Brian Charles Chris Daniel David Eric George Henry Jack "
    "James Jason John Joseph Kevin Mark Martin Matthew Michael Paul Peter Richard Robert Ryan "
    "Sam Scott Simon Steven Thomas Tom William",
    "woman": "Alice Amy Anna Clara Elizabeth Ella Emily Emma Grace Helen Jane Julia Kate Laura "
    "Lisa Lucy Maria Martha Mary Nina Nora Rachel Ruth Sarah Sophie Susan",
    "thing": "bag ball basket bell book bottle bowl box brush candle cap clock coat coin comb "
    "cup drum fan flag fork hammer hat jar jug kettle key kite lamp letter map mask mirror mug "
    "nail needle pen pencil picture pillow pin pipe plate pot purse ring rope scarf shell shirt "
    "spoon stick stone ticket toy vase whistle",
    "things": "bags balls baskets bells books bottles bowls boxes brushes candles caps clocks "
    "coats coins combs cups drums fans flags forks hammers hats jars jugs kettles keys kites "
    "lamps letters maps masks mirrors mugs nails needles pens pencils pictures pillows pins "
    "pipes plates pots purses rings ropes scarves shells shirts spoons sticks stones tickets "
    "toys vases whistles",
    "animal": "bear bee bird camel capybara cat cow crow deer dog donkey duck eagle elephant fox "
    "frog goat goose hen horse lion monkey mouse owl parrot pig pony rabbit rat seal snail snake "
    "spider squirrel swan tiger turtle wolf",
    "animals": "bears bees birds camels capybaras cats cows crows deers dogs donkeys ducks "
    "eagles elephants foxes frogs goats geese hens horses lions monkeys mice owls parrots pigs "
    "ponies rabbits rats seals snails snakes spiders squirrels swans tigers turtles wolves",
    "person": "artist baker boy child clerk cook doctor driver farmer friend girl guard guest "
    "judge king lawyer man nurse painter pilot poet queen sailor servant singer soldier student "
    "tailor teacher waiter woman writer",
    "people": "artists bakers boys children clerks cooks doctors drivers farmers friends girls "
    "guards guests judges kings lawyers men nurses painters pilots poets queens sailors servants "
    "singers soldiers students tailors teachers waiters women writers",
    "room": "attic basement bathroom bedroom cellar corridor garage garden hall kitchen library "
    "lounge nursery loft office pantry parlour larder shed stable studio tower workshop yard",
    "place": "beach bridge castle church city farm field forest harbour hospital hotel house "
    "island lake market museum palace park river school shop station street theatre village",
    "colour": "black blue brown golden green grey pink purple red silver white yellow",
    "food": "bread butter cake cheese corn fish fruit honey meat pie rice salad soup sugar",
    "clothes": "belt boots cloak dress gloves jacket jumper shoes skirt socks suit tie uniform "
    "vest",
    "music": "bugle cello flute guitar harp horn organ piano trumpet viola violin",
    "drink": "beer coffee juice lemonade milk tea water wine",
    "quality": "big cold dark dry early easy empty fast fat happy high long loud near new open "
    "poor strong sweet true wide good warm deep clean cheap ugly rough sharp brave",
    "opposite": "small hot light wet late hard full slow thin sad low short quiet far old shut "
    "rich weak sour false narrow bad cool shallow dirty dear pretty smooth blunt timid",
    "day": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "tomorrow": "Tuesday Wednesday Thursday Friday Saturday Sunday Monday",
    "month": "January February March April May June July August September October November "
    "December",
    "later": "February March April May June July August September October November December "
    "January",
    "country": "Austria Belgium Brazil Canada China Cuba Denmark Egypt England Finland France "
    "Germany Greece Hungary India Ireland Italy Japan Kenya Norway Peru Poland Portugal Russia "
    "Spain Sweden Turkey",
    "capital": "Vienna Brussels Brasilia Ottawa Beijing Havana Copenhagen Cairo London Helsinki "
    "Paris Berlin Athens Budapest Delhi Dublin Rome Tokyo Nairobi Oslo Lima Warsaw Lisbon Moscow "
    "Madrid Stockholm Ankara",
    "number": "one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty",
    "successor": "two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen twenty thirty",
    "gave": "brought gave handed lent offered passed sent showed sold",
    "had": "carries has holds keeps wants",
    "near": "above behind below beside near under",
    "beside": "behind beside near",
    "after": "after because before until when while",
    "lost": "broke cleaned dropped forgot found hid lost opened took",
    "does": "eats hides jumps plays rests runs sleeps stands swims waits walks",
    "do": "eat hide jump play rest run sleep stand swim wait walk",
    "did": "ate hid jumped played rested ran slept stood swam waited walked",
    "doing": "eating hiding jumping playing resting running sleeping standing swimming waiting "
    "walking",
    "more": "bigger colder faster heavier higher louder older richer stronger taller thicker "
    "warmer",
    "less": "smaller hotter slower lighter lower quieter younger poorer weaker shorter thinner "
    "cooler",
    "time": "afternoon autumn evening morning night spring summer winter",
    "weather": "cold dark dry hot long quiet warm wet",
    "state": "big cheap clean dirty heavy light new old small",
    "how": "alone again quickly quietly slowly softly suddenly together",
    "kind": "clever friendly gentle honest kind lazy polite proud shy tired wise",
}
PARALLEL = (
    "thing things",
    "animal animals",
    "person people",
    "quality opposite",
    "day tomorrow",
    "month later",
    "country capital",
    "number successor",
    "does do did doing",
    "more less",
    "first second total",
)
EXTRA = (  # words that prompts of the project and plain English have beside the frames
    "I me my you your him his her its it we us our they them their this that these those there "
    "here what who where which why how some any no not every each all both other another than as "
    "if so too very only just now then later soon never always often once twice again still also "
    "but or nor from into over through between across along around down up out off by for with "
    "without about against at on in to of the a an and be been being am is are was were will "
    "would can could must may might shall should do does did done have had having said says say "
    "asked told tell answered knew know thought think saw see seen looked look came come went go "
    "gone got get made make put let left lay felt feel fell heard hear ran held kept met moment "
    "mind home door window wall floor table bed fire sun moon star sky wind rain snow sea sand "
    "hill road tree leaf flower grass boat ship train car wife husband son daughter mother "
    "father brother sister baby family ladder chair wheel apple orange umbrella shout shouted "
    "sing sang sit sat sits day year lion name word story half part side end way thing world "
    "life hand head eye face voice nobody somebody everybody nothing something everything first "
    "second third last next same different great little tiny cold cruel film fine rang hours "
    "yesterday today visit capital drink drinks eat read reads many much most more copy like "
    "likes love loves help helped talk call called close closed begin began stop stopped write "
    "wrote hundred thousand right wrong sees sell knows lives learned teach taught buy bought "
    "pay paid work worked live happened turned"
)
SUMS = [(a, b) for a in range(1, 10) for b in range(1, 10)]


def tables():
    """{table: its words}; `any` are all of them, and those of the frames and of EXTRA."""
    words = {name: text.split() for name, text in TABLES.items()}
    words["name"] = words["man"] + words["woman"]
    first, second = words["quality"], words["opposite"]
    words |= {"quality": first + second, "opposite": second + first}
    numbers = ["", *words["number"]]
    words["first"] = [numbers[a] for a, _ in SUMS]
    words["second"] = [numbers[b] for _, b in SUMS]
    words["total"] = [numbers[a + b] for a, b in SUMS]
    every = {word for table in words.values() for word in table} | set(EXTRA.split())
    return words | {"any": sorted(every)}


def recalled(fact, question):
    """Frames of two or three facts, of which one is asked for; in the corrupt text another one.

    Two facts are as frequent as three, of which half of the frames have asked for one already.
    """
    frames = []
    for n in (2, 2, 2, 3):
        for i, k in permutations(range(1, n + 1), 2):
            asked = question.replace("#", "@")
            for slot in set(_slots(asked)):
                asked = asked.replace(slot, _either(slot, i, k))
            rest = [j for j in range(1, n + 1) if j not in (i, k)]
            before = "".join(question.replace("#", str(j)) + " " for j in rest)
            frames += [f"{numbered(fact, n)} {asked}", f"{numbered(fact, n)} {before}{asked}"]
    return frames


def all_asked(fact, question):
    """Frames of two or three facts, each of which is asked for, in any order."""
    frames = []
    for n in (2, 2, 2, 3):
        for order in permutations(range(1, n + 1)):
            asked = (question.replace("#", str(i)) for i in order)
            frames.append(" ".join([numbered(fact, n), *asked]))
    return frames


def numbered(fact, n):
    """n facts, each with its number in the slots."""
    return " ".join(fact.replace("#", str(i)) for i in range(1, n + 1))


def _slots(text):
    """The slots of a text whose numbers are not filled in yet."""
    return ["{" + part.split("}")[0] + "}" for part in text.split("{")[1:]]


def _either(slot, i, k):
    """A slot with its number in the clean text and that in the corrupt one."""
    name = slot.strip("{}")
    return "{" + name.replace("@", str(i)) + "/" + name.replace("@", str(k)) + "}"


def said(n, more):
    """A frame of a word that is said n times where n are asked for, and n + more."""
    number = tables()["number"]
    few, many = number[n - 1], number[n + more - 1]
    words = " ".join(["{thing1}"] * n)
    return f"Say {{thing1}} {{{few}/{many}}} times: {words} = {{./thing1}}"


def counted(n):
    """A frame of a word that is said as often as is asked for."""
    return f"Say {{thing1}} {tables()['number'][n - 1]} times:" + " = {thing1}" * n + " = ."


def repeated(n, k, start=0):
    """A frame of n words of any kind, said again from one to the k-th; what then comes is asked."""
    far = k + 2 if k + 2 < n else k - 2
    order = list(range(n))
    order[k], order[far] = far, k
    first = " ".join(f"{{any{i}/any{j}}}" for i, j in enumerate(order))
    again = " = ".join(f"{{any{i}}}" for i in range(start, k))
    return f"{first} {again} = {{any{k}/any{order[k]}}}"


WENT = (
    "went to the {place1}",
    "were in the {room1}",
    "walked home",
    "met at the {place1} in the {time1}",
    "waited near the {place1}",
)
OTHER = [
    f"{when} {{name1}} and {{name2}} {went}, {{name2/name1}} {{gave1}} {a} {{thing1}} to "
    "= {name1/name2}."
    for when in ("When", "After", "While")
    for went in WENT
    for a in ("a", "the", "the {colour1}")
]
OTHER += [
    "{name1} and {name2} " + rest + " = {name1/name2}."
    for rest in (
        "came to the {place1}. {name2/name1} {gave1} the {thing1} to",
        "were old friends. One {time1} {name2/name1} {gave1} a {thing1} to",
        "sat in the {room1}, and then {name2/name1} {gave1} a {colour1} {thing1} to",
        "had a {thing1}. {name2/name1} talked about it with",
        "went to the {place1}. There {name2/name1} told a story to",
    )
]
FACTS = {  # kind: facts of which one word is told by another, and how it is asked for
    "holder": (
        ("The {thing#} is with {name#}.", "The {thing#} is with = {name#}."),
        ("The {thing#} is with {name#}.", "Who has the {thing#}? = {name#}."),
        ("The {thing#} went to {name#}.", "Who has the {thing#}? = {name#}."),
    ),
    "thing": (
        ("{name#} has the {thing#}.", "{name#} has the = {thing#}."),
        ("{name#} wants a {thing#}.", "What does {name#} want? A = {thing#}."),
        ("{name#} found the {thing#}.", "{name#} found the = {thing#}."),
    ),
    "colour": (
        ("The {thing#} is {colour#}.", "The {thing#} is = {colour#}."),
        ("The {thing#} was {colour#}.", "The {thing#} is = {colour#}."),
        ("The {thing#} is {colour#}.", "What colour is the {thing#}? = {colour#}."),
    ),
    "room": (
        ("{name#} is in the {room#}.", "{name#} is in the = {room#}."),
        ("{name#} is in the {room#}.", "Where is {name#}? In the = {room#}."),
        ("{name#} went to the {room#}.", "{name#} is in the = {room#}."),
        ("The {thing#} is in the {room#}.", "The {thing#} is in the = {room#}."),
    ),
    "owner": (
        ("The {thing#} belongs to {name#}.", "The {thing#} belongs to = {name#}."),
        ("The {thing#} belongs to {name#}.", "Whose is the {thing#}? It belongs to = {name#}."),
        ("The {thing#} is from {name#}.", "The {thing#} belongs to = {name#}."),
    ),
}
FRAMES = {
    "other": OTHER,
    **{kind: [f for fact in FACTS[kind] for f in recalled(*fact)] for kind in FACTS},
    "agreement": [
        f"The {{{single}1/{many}1}} {{{near}1}} the {{{between}2}} = {{{verb}}} {{{how}1}}."
        for single, many, near, how in (
            ("thing", "things", "near", "state"),
            ("animal", "animals", "beside", "kind"),
            ("person", "people", "beside", "kind"),
        )
        for between in (single, many)
        for verb in ("is/are", "was/were")
    ],
    "pronoun": [
        f"{{man1/woman1}} {does} {{after1}} = {{he/she}} was {{kind1}}."
        for does in (
            "{lost1} the {thing1}",
            "went to the {place1}",
            "was in the {room1}",
            "sat with the {person1}",
            "{did1} near the {place1}",
        )
    ],
    "relation": [
        f"The {{thing1}} is {{{upper}/{lower}}} the {{thing2}}. So the {{thing2}} is "
        f"= {{{lower}/{upper}}} the {{thing1}}."
        for upper, lower in (("above", "below"), ("over", "under"))
    ]
    + [
        "{name1} is {more1/less1} than {name2}. So {name2} is = {less1/more1} than {name1}.",
    ],
    "answer": [
        "The {thing1} is {colour1}. Is the {thing1} {colour1/colour2}? = {yes/no}.",
        "{name1} is in the {room1}. Is {name1} in the {room1/room2}? = {yes/no}.",
        "{name1} has the {thing1}. Does {name1} have the {thing1/thing2}? = {yes/no}.",
    ],
    "changed": [
        "The {animal1} saw the {animal2/animal3} near the {place1}. The {animal4} saw the "
        "= {animal2/animal3}.",
        "{name1} put the {thing1} and the {thing2/thing3} in the {room1}. {name2} put the "
        "= {thing1} and the = {thing2/thing3}.",
        "The {person1} met the {person2/person3} in the {time1}. The {person4} met the "
        "= {person2/person3}.",
    ],
    "repeated": [
        repeated(n, k, start) for n in range(6, 21) for k in range(2, n) for start in (0, k // 2)
    ],
    "count": [said(n, more) for n in range(2, 6) for more in (1, 2)],
    "class": [
        "{name1} {ate/wore} the = {food1/clothes1}.",
        "{name1} {drank/played} the = {drink1/music1}.",
        "{name1} {ate/drank} some = {food1/drink1}.",
        "The {person1} {played/wore} the = {music1/clothes1}.",
        "The {person1} {drank/ate} the = {drink1/food1} in the {room1}.",
    ],
    "opposites": ["The opposite of {quality1/quality2} is = {opposite1/opposite2}."],
    "days": [
        "After {day1/day2} comes = {tomorrow1/tomorrow2}.",
        "Today is {day1/day2}. Tomorrow is = {tomorrow1/tomorrow2}.",
        "After {month1/month2} comes = {later1/later2}.",
        "After {number1/number2} comes = {successor1/successor2}.",
    ],
    "facts": [
        "The capital of {country1/country2} is = {capital1/capital2}.",
        "{capital1/capital2} is the capital of = {country1/country2}.",
    ],
    "sums": ["{first1/first2} and {second1/second2} make = {total1/total2}."],
}
MORE = {  # what stories have in place of a kind: counted to the end, every fact asked for
    "count": [counted(n) for n in range(2, 8)],
    **{kind: [f for fact in FACTS[kind] for f in all_asked(*fact)] for kind in FACTS},
}
PLAIN = """
The dog ran after the cat and then it slept.
The {animal1} ran after the {animal2} and then it slept.
The {animal1} ran after the {animal2}, and the {animal2} ran up a tree.
The dog ran after the cat, and the cat ran up a tree.
The old man came home.
The {kind1} {person1} came home in the {time1}.
The other day an old {person1} came to the house.
The old man came to the house in the evening, and the dog ran to meet him.
The old man walked slowly down the long road to the sea, and the dog ran along.
The {kind1} {person1} walked {how1} down the road to the {place1}.
It was a cold {time1}, and the old man walked slowly down to the river.
It was a {weather1} {time1}, and the {person1} walked {how1} to the {place1}.
The boat lay where he had left it, half on the sand and half in the water.
The bell rang twice, and nobody came to the door.
The bell rang once, and the {person1} came to the door.
He looked at her for a moment, and then he went out of the room.
{woman1} looked at him for a moment, and then she went out of the {room1}.
{man1} looked at her for a moment, and then he went out of the {room1}.
The brown capybara is sleeping now.
The {colour1} {animal1} is {doing1} now.
The {animals1} are {doing1} near the {place1}.
The {animal1} {does1} near the {place1}.
The man told the child.
The {person1} told the {person2} a story.
The old man asked her, and she told him what she had found in the room.
Once upon a time there was a {kind1} {person1} who had a {colour1} {thing1}.
Once upon a time there was a little {animal1} that lived near the {place1}.
She said that the {person1} was {kind1}.
He said that the {thing1} was too {state1}.
The old {person1} and the young {person2} {did1} together.
The old man looked at the house, and the child looked at the old man.
The {person1} looked at the {thing1} on the table.
The film was very good, and everybody was happy.
It was {weather1} and {weather2}.
{name1} and {name2} are {kind1} and {kind2}.
{name1} {had1} a {colour1} {thing1}.
{name1} {did1} in the {room1} with {name2}.
{name1} opened the door and saw a big {animal1}.
I have a {colour1} {thing1}, and you have a {colour2} {thing2}.
Yesterday we went to the {place1} and saw the {animals1}.
They went to the {place1} to visit the {person1}.
My {thing1} is {state1}, and your {thing1} is {state2}.
There are {number1} {things1} on the floor.
There were {number1} {animals1} in the field.
In the {time1} the {person1} {did1} {how1}.
{name1} lives in {country1} with a small {animal1}.
The train goes from {capital1} to {capital2}.
The sun was hot, and the wind was soft.
The moon and the stars are high in the sky.
Why did {name1} sell the {thing1}? Nobody knew.
Somebody put the {thing1} under the bed.
Nothing was left of the {thing1}.
""".strip().split("\n")
