"""The words by which a question is told from an order, and one order from another. English; see `intent`."""

import re


def _words(pattern: str) -> "re.Pattern[str]":
    """A pattern that may stand in several lines, whatever the case."""
    return re.compile("".join(line.strip() for line in pattern.splitlines()), re.IGNORECASE)


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


NAME = re.compile(
    r"(?<![\w@:/.~-])(?:[\w.-]+/)*[\w.-]*\w\.(?:[a-z]\w{0,4}|[A-Z]{1,4})\b(?![(/@])|\b[\w.-]+/(?:[\w.-]+/?)*"
)
URL = re.compile(r"\w+://\S+")
NO_FILE = re.compile(r"\.(?:com|org|net|io|eu|de|at|uk)$|^(?:e\.g|i\.e)$")
QUOTED = re.compile(r"(?<!\w)'([^'\n]+)'(?!\w)|\"([^\"\n]+)\"|`([^`\n]+)`|“([^”\n]+)”")

VERBS = {
    "write": "create make write save generate store",
    "add": "add append put insert include jot attach prepend",
    "edit": "change replace set edit update fix correct repair modify swap switch increase decrease raise lower adjust "
    "rewrite capitalize sort uncomment debug bump toggle enable disable tick mark cross turn make",
    "rename": "rename move",
    "copy": "copy duplicate clone",
    "delete": "delete erase trash",
    "remove": "remove drop strip cut take",
    "run": "run execute start launch rerun",
}
FAMILIES = {
    word: {family for family, words in VERBS.items() if word in words.split()}
    for words in VERBS.values()
    for word in words.split()
}

_POLITE = (
    r"(?:can|could|would|will|might)[ -]?(?:you|u|ya)"
    r"(?: (?:please|pls|plz|kindly|maybe|just|also|be so kind(?: as to| and)?))*"
)
POLITELY = re.compile(rf"\b(?:{_POLITE}|please|pls|plz)\s+(?=\w)", re.IGNORECASE)
FILLER = _words(
    rf"""^(?:(?:{_POLITE}|please|pls|plz|kindly|now|then|next|also|and|but|ok|okay|alright|right|hey|hi|hello|so|well|
    yes|yeah|just|thanks|great|i(?:'d| would)? (?:want|need|like) (?:you )?to|you (?:should|can|could|may|must)|let'?s|
    let us|go ahead and|go and|try to|help me(?: to)?|be so kind (?:as to|and)|everloop|first|finally|after that|
    (?:in|inside|at|for|from|to|on) (?:the )?(?:file )?[\w./-]*\w\.\w{{1,5}})[,:!]?\s+)+"""
)
ASKED = _words(
    r"""^(?:and |but |so |ok |hey |hi |then |also |now |or |well )*(?:what|which|who|whom|whose|when|where|why|how|
    whats|whos|hows|wheres|is|isn't|are|aren't|was|were|am|does|doesn't|did|didn't|has|had|should|shall|may|might|must|
    do (?:you|we|i|they|any|my|the|these|those)|have (?:you|i|we|they|any)|
    (?:can|could|would|will) (?!you\b|u\b|ya\b)\w+|any idea|i wonder|wondering)\b"""
)
REMEMBER = _words(
    r"""(?:please\s+|pls\s+|(?:can|could|would|will) you (?:please )?|hey,?\s+|ok,?\s+|and\s+|also,?\s+)*
    (?:remember|keep in mind|(?:don't|do not|never) forget)[,:]?\s+(?:for (?:me|later),?\s+)?(?:that\s+)?
    (?!to\b|when\b|how\b|what\b|why\b|where\b|who\b|this\b|it\b|me\b|about\b|in\b|down\b)(?P<what>[^?]{3,400}?)[.!]*$"""
)
TELL = _words(r"^(?:tell|show|explain|describe|teach|remind|list|summari[sz]e|count|read|find|look|check|compare)\b")
ABOUT_DOING = _words(
    r"""\bhow (?:to|do|does|can|could|would|should)\b|\bwhat (?:happens|would|will)\b|\bif (?:i|you|we)\b|
    \bwhether\b|\bwhy\b"""
)
TAG = _words(r"(?:,|\s)\s*(?:ok|okay|please|pls|will you|would you|can you|could you)\s*\?+$")
NEW = _words(
    r"""^(?:i(?:'d)? (?:need|want|like)|give me|start) (?:me )?(?:a|an|another|one)(?: new| empty| small| simple)*
    \s[\w -]{0,30}?(?:file|folder|directory|script|program|note)\b"""
)
SURELY_DONE = _words(
    r"\b(?:run|execute|launch|rename|delete|erase|fix|repair|correct|change|replace|update|remove)\s+(?:it|that|this|them|the)\b"
)
SHOULD_BE_CALLED = _words(r"\bshould (?:be|get) (?:called|named|renamed)\b")
SHOULD = _words(
    r"\b(?:should|must|needs? to|has to|ought to) (?:be|say|have|print|return|read|contain|show|end|begin|start|use)\b"
)
GET_RID = _words(r"^(?:get rid of|throw (?:away|out)|bin)\b")
BACK_UP = _words(
    r"""^(?:back[ -]?up|make (?:me )?(?:a|another) (?:back-?up|copy|duplicate) of|
    (?:make|create) (?:a )?(?:copy|duplicate|back-?up))\b"""
)
A_NAME_IN_A_FILE = _words(r"\b(?:function|variable|method|class|key|column|heading|title|word|field|section)\b")
OURS = _words(
    r"\b(?:my|our|mine|i|we|here|this|these|project|code|repo(?:sitory)?|notes?|files?|folders?|scripts?|documents?|the)\b"
)
NO_HOME = _words(
    r"\b(?:what|who|which|where)(?:'s|s| is| are| was) the\b|\b(?:in|of|to|on) the\b|\bthis (?:year|month|week|day)\b"
)
ASKED_ELSEWHERE = _words(
    r"""^(?:was|wer|wo|wie|wann|warum|wieso|welche\w*|ist|sind|gibt|hat|kannst|zeige?|nenne?|sage?|que|qué|quoi|qui|
    quel\w*|où|ou|comment|combien|pourquoi|est|montre|dis|cu[aá]l\w*|qui[eé]n\w*|d[oó]nde|c[oó]mo|cu[aá]ndo|
    cu[aá]nt\w*|muestra|che|chi|dove|come|quanto|quanti|perch[eé]|mostra)\b"""
)
FOREIGN = _words(
    r"""[à-öø-ÿœß]|[^\W\d_a-zA-Z]|\b(?:eine?n?|der|die|das|und|mit|datei|ordner|schreibe?|erstelle?|lege?|zeile|bitte|fichier|
    dossier|une|les|avec|dans|ajoute|archivo|carpeta|crea|escribe|agrega|los|una|con|scrivi|aggiungi|maak|bestand)\b"""
)
FILE_NAME = _words(r"\b(?:change|set) (?:the )?(?:file ?)?name\b")
PUT_FILE = _words(r"\b(?:put|place)\s+(?:the\s+)?(?:file\s+)?[\w./-]+\.\w+\s+(?:in|into|inside|under)\b")
INTO_FILE = _words(
    r"""(?:\b(?:to|into|onto|as)|\b(?:to|at|on) the (?:end|bottom|top|beginning) of|''\s+(?:in|on)|\bdown\b.*\bin)\s+
    (?:the\s+|my\s+)?(?:file\s+)?[\w./-]+\.\w+"""
)
# What begins like an order and is none, or is one about the answer.
IDIOM = _words(
    r"""^(?:(?:run|update|fill|drop|set|mark|copy|correct|move|fix|turn|start|take) (?:me|us)\b|
    run (?:through|over|by|down|out|into)\b|move on\b|copy that\b|take (?:a|another|the time|into|notes)\b|
    sort (?:of|out)\b|add up\b|start (?:by|with|from|at|over|reading|off)\b|make (?:sure|sense|a guess|up)\b|
    put (?:simply|differently|another way)\b|set (?:aside|out)\b|turn to\b|change (?:of|the subject|the topic)\b|
    drop (?:by|in)\b|cut (?:to|the)\b|correct[,.!]*$)"""
)
# They are said of an answer as well as of a file: without a file's name they are no order.
LOOSE = _set("make sort rewrite turn mark tick cross capitalize put take drop cut store save")
ONTO_IT = _words(
    r"\b(?:on|in|into|to|off|from)\s+(?:it|there|(?:the|my|that|this)(?: \w+)? (?:list|file|note|notes))\b"
)
ANSWER = _words(
    r"""\byour (?:\w+ )?(?:answer|reply|response|summary|list|explanation|text|message|words?|sentence)s?\b|
    \bthe answer\b"""
)
HYPOTHETICAL = _words(
    r"\bif (?:i|we) (?:asked|wanted|told|said|let|allowed|were)\b|\bbe able\b|\bin (?:theory|principle)\b"
)
MAKE_IT = _words(r"\bmake (?:the|it|its|this|that|all|every|each)\b")
DELETE_IT = _words(
    r"""\b(?:delete|erase|trash|rid of|away|bin)\s+(?:it|that|this|them|(?:that|this|the) (?:file|one|script))
    \s*(?:now|please|pls|again|too|then)?\s*(?:[,.!]|$)"""
)
DESTINATION = _words(r"\b(?:to|as|into|called|named) [\"'`]?([\w-]+)[\"'`]?\s*(?:[.!,]|please|$)")
KIND = _words(
    r"""(?<!\w)\*?\.(\w{1,5}) (?:files?|scripts?)\b|
    \b(python|csv|json|markdown|text|txt|pdf|md|html|py) (?:files?|scripts?)\b"""
)
KINDS = {"python": "py", "markdown": "md", "text": "txt"}
CALCULATION = _words(
    r"""\d\s*(?:[-+*/^×÷]|\*\*|x(?=\s*\d))\s*\(?\d|\d\s*%\s*(?:of|off|tip|tax|vat|discount|more|less)|
    \b(?:calculat|comput)(?:e|es|ed|ing)\b|\bsquare roots?\b|\bcube root\b|\bfactorial\b|\bto the power\b|
    \d\s*(?:plus|minus|times|multiplied|divided|squared|cubed|modulo|mod)\b|
    \b(?:sum|product|average|mean|median|difference|remainder|quotient) of\b.*\d|\bsum up\b.*\d|
    \b(?:days|weeks|months|hours|minutes|seconds) (?:are (?:there |left )?)?(?:until|till|between|since|from|left|in)\b|
    \bprime (?:number|factor)s?\b|\d.*\bprime\b|\bfibonacci\b|\b\d+ ?percent of\b|\b(?:square|cube) of\b|
    \bconvert\b.*\d|
    \b(?:divide|multiply|subtract|add)\b \d|\b\d{1,2}:\d\d\b.*\d|\b(?:weekday|day)\b.*\b[12]\d{3}\b|
    \bhow long (?:until|till|is it until)\b|
    \d.*\b(?:celsius|fahrenheit|km|kilomet\w+|miles?|pounds|kg|inch(?:es)?|cm|feet|lit(?:re|er)s?|gallons?)
    (?: in| to| into)\b|
    \bborn in \d|\b\d+ (?:years|days|weeks|months) (?:ago|from)\b|
    \bin \d+ (?:years|days|weeks|months|hours)\b"""
)
PYTHON = _words(r"\b(?:us(?:e|ing)|with|in|via) python\b|\bpython\b.*\b(?:what|how|tell)\b")
AMOUNT = _words(
    r"\b(?:how (?:many|much|long|far|old)|what(?:'s| is| are)?|total|altogether|left|remain\w*|cost|each)\b"
)
COUNTED = _words(r"\d|\b(?:how (?:many|much|long|old|far)|count|sum|total|average|number|difference)\b")
AGAIN = _words(r"\b(?:half|twice|double|triple|third|quarter|tenth|percent|squared|plus|minus|times|divided)\b")
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?!\w*\.\w)")
YEAR = re.compile(r"1\d{3}|20\d\d")
SEARCHED = _words(
    r"""\b(?:mention\w*|contain\w*|occur\w*|appear\w*|talks? about|writ\w* about|wrote about|speaks? (?:of|about)|about|
    defin\w*|declar\w*|implement\w*|search\w*|grep|look(?:ing)? for|find|where|uses?|used|imports?|calls?|called from|
    references?|todos?|says?|(?:has|have) the word)\b"""
)
SURELY_SEARCHED = _words(
    r"\banything (?:about|on)|\bmention|\bcontain|\boccur|\bappear|\bdefin|\bgrep|\bsearch|\btodo|\bimplement|\bdeclar"
)
PLACES = _words(r"\b(?:files?|folders?|director(?:y|ies)|workspace|here|documents|scripts)\b")
LISTED = _words(
    r"""^(?:list|show|display|ls|dir|what|which|whats|how many|tell|give|count|do (?:i|we)|are there|is there|see|
    look)\b"""
)
POINTED = _words(r"\b(?:it|that|this|them|there|the (?:file|list|script|number|value|program|code|text|same))\b")
THING = _words(r"\b(?:file|folder|directory|script|program|note|document|list|table|csv|json)s?\b")
A_THING = _words(r"\b(?:a|the|an|my)\b")
MAKE = _words(r"\bmake\b")
MAKE_NEW = _words(r"\bmake (?:me )?(?:a|an|another) (?:new )?(?:\w+ )?(?:file|folder|directory|script|program)")
REMOVED_FILE = _words(r"\b(?:remove|drop)\s+(?:the\s+)?(?:file\s+)?[\w./-]+\.\w+\b")
AT_AN_END = _words(r"\b(?:end|bottom|top|beginning) of\b")
A_PART = _words(r"\b(?:lines?|words?|entr(?:y|ies)|rows?|sentences?|paragraphs?|functions?|keys?|columns?|items?)\b")
DELETED_FILE = _words(
    r"""\b(?:delete|erase|trash|rid of|away|out|bin)\s+(?:the\s+|my\s+|that\s+|this\s+)?(?:old\s+)?
    (?:files?\s+|script\s+)?(?:[\w./-]+\.\w|it\b|that\b|this\b|them\b|both\b|all\b|files?\b)"""
)
FOLDER_CALLED = re.compile(
    r"\b(?:folder|directory|dir|subfolder)\b(?:,? (?:called|named|with the name))?:? [\"'`]?([\w.-]*\w)/?[\"'`]?",
    re.IGNORECASE,
)
CALLED_FOLDER = re.compile(r"[\"'`]?\b([\w.-]*\w)/?[\"'`]? (?:sub)?(?:folder|directory)\b", re.IGNORECASE)
NO_NAMES = _set(
    "a an the new this that my our your it and in with folder directory file empty which inside of is to current same "
    "other whole called named where"
)
AT_THE_TOP = _words(r"\b(?:top|beginning|start|first line|front) of\b|\bat the (?:top|beginning|start)\b|\bprepend")
OVERWRITTEN = _words(r"\boverwrit|\brewrit|\binstead\b|\bempty\b|\bwhole\b|\bonly\b")
SWAPPED = (
    _words(
        r"""\b(?P<verb>replace|swap|substitute)s? (?P<old>.+?) (?:with|by|for) (?P<new>.+?)
        (?= (?:in|inside|within|of|everywhere|throughout)\b|[.!?]*$)"""
    ),
    _words(r"""\b(?P<verb>from) (?P<old>.+?) (?:in)?to (?P<new>.+?)(?= (?:in|inside|within|everywhere)\b|[.!?]*$)"""),
    _words(
        r"""\b(?P<verb>change|turn|correct|update|rename) (?P<old>.+?) (?:in)?to (?P<new>.+?)
        (?= (?:in|inside|within|everywhere)\b|[.!?]*$)"""
    ),
)
AROUND = _words(
    r"^(?:(?:the|every|all|each|any|word|words|name|text|line|function|variable|occurrences? of|its|my)\s+)+"
)
SORTED = _words(r"^\s*(?:please |pls |can you |could you )*sort\b|\balphabetical")
MENDED = _words(r"\b(?:fix|repair|correct|debug|bugs?|wrong|broken|mend)\b")
STOP = _set(
    "a an the is are was were do does did in on at of for to from with by and or but i me my mine we our you your it "
    "its this that these those what which who where when why how find search look show tell list all any every some "
    "file files folder folders document documents project mention mentions mentioned contain contains containing "
    "defined define occur occurs appear appears about talk talks word words line lines there here have has had can "
    "could would will please pls one which's what's where's whats be been so used use uses say says written write "
    "wrote name named called workspace directory not no give know function class variable method text comments comment "
    "if also ever anywhere somewhere into code many much"
)
