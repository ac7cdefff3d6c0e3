"""Real keys: the words of this machine's dictionary, or addresses made from a word list, always the same.

For: the demo. Not here: random bytes (tests make those themselves).
"""

import os

_SUBJECTS = """account album article author basket blog book brand cart category city comment company contact country
course customer device document event film forum game gallery group guide holiday hotel image invoice item journal
lesson library market member menu message model museum news note offer order page partner payment person photo place
player post price product profile project question recipe report result review room school score season service
session shop song station story student survey team theme ticket topic tour track train trip update user venue video
village visit voucher weather week wiki winner worker writer zone""".split()
_QUALITIES = """amber ancient autumn big blue bold brave bright broken calm clever cold cool crisp curious dark deep
dry early eager empty fast fine first flat fresh full gentle giant glad golden grand green happy heavy hidden high
hollow honest huge icy jolly kind large last late lazy light little long loud lucky mellow mild misty modern narrow
neat new noble north odd old open orange pale patient plain polite proud purple quick quiet rapid rare red rich rough
round royal rusty sharp shiny short shy silent silver simple slow small smart smooth soft solid spare spring steady
still stormy strong sunny sweet swift tall tame thin tidy tiny true vast velvet warm weary white wide wild windy wise
witty yellow young""".split()
_HOSTS = "shop.example news.example wiki.example photos.example travel.example music.example".split()


def keys(count):
    """`count` different keys."""
    found = []
    for path in ("/usr/share/dict/words", "/usr/share/dict/american-english"):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                found = sorted({b"word:" + line.strip() for line in file if line.strip()})[:count]
            break
    number = 0
    while len(found) < count:
        subject = _SUBJECTS[number % len(_SUBJECTS)]
        rest = number // len(_SUBJECTS)
        quality = _QUALITIES[rest % len(_QUALITIES)]
        rest //= len(_QUALITIES)
        host = _HOSTS[rest % len(_HOSTS)]
        page = rest // len(_HOSTS)
        found.append(f"https://{host}/{subject}/{quality}" .encode() + (f"?page={page + 1}".encode() if page else b""))
        number += 1
    return found
