#pragma once
// The words of the grammar, English beside Hindi, with what each needs to know: gender, irregular forms, and
// which words go together ("eat" takes food, "hungry" describes creatures).

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "translate/hindi.hpp"

namespace translate {

/// What a noun stands for. Adjectives and verbs hold the set of the topics that they go with.
enum Topic : std::uint32_t {
  person = 1u << 0,
  animal = 1u << 1,
  food = 1u << 2,
  drink = 1u << 3,
  text = 1u << 4,     // read and written
  goods = 1u << 5,    // bought, sold and stolen
  opening = 1u << 6,  // opened and closed
  fragile = 1u << 7,  // broken
  washable = 1u << 8,
  handmade = 1u << 9,
  cuttable = 1u << 10,
  object = 1u << 11,  // has a size, a colour, an age
  place = 1u << 12,
};
inline constexpr std::uint32_t creature = person | animal;
inline constexpr std::uint32_t thing = food | drink | text | goods | object;

struct Noun {
  std::string_view english, english_plural;  // no plural: "water", or a name
  std::string_view hindi;
  Gender gender;
  std::uint32_t topics;
  bool name = false;
  bool declines = true;  // see decline()

  bool is(std::uint32_t topic) const { return (topics & topic) != 0; }
};

struct Adjective {
  std::string_view english;
  std::string_view hindi;
  int rank;  // "big old black dog": opinion, size, age, price, colour; two of one rank don't stand together
  std::uint32_t topics;
  std::string_view hindi_of_things = {};  // where it differs: an old man is बूढ़ा, an old book पुरानी
};

enum class Frame {
  intransitive,  // sleep
  transitive,    // bite SOMEBODY, eat SOMETHING
  ditransitive,  // give SOMETHING to SOMEBODY
};

/// How a Hindi verb is used.
struct Usage {
  std::string_view marker =
      "को";  // the postposition of the object: को if it is definite and alive, the others always
  std::string_view before = {};  // the noun of a compound verb, मदद करना, or its adjective, बंद करना
  bool before_is_noun = false;   // a noun takes the agreement, an adjective leaves it to the object
  Gender before_gender = Gender::masculine;
  bool ergative = true;       // the subject of the perfective takes ने
  bool always_marks = false;  // को even if the object is an indefinite animal
  bool stative = false;       // no progressive
};

struct Verb {
  std::string_view english, third_person, past, present_participle;
  Frame frame;
  std::uint32_t subjects, objects;  // topics
  HindiVerb hindi;
  Usage usage = {};
};

struct Pronoun {
  std::string_view subject, object;  // English
  std::string_view direct, ergative, dative, instrumental, genitive, locative;
  Agreement agreement;
  bool third_singular;  // English: he bites
};

struct TimeWord {
  std::string_view english, hindi;
  unsigned tenses;  // bits 1 << Tense
};

struct Preposition {
  std::string_view english, hindi;  // "to" leaves the bare oblique: वह बाज़ार गया
};

inline const std::vector<Noun>& nouns() {
  constexpr Gender m = Gender::masculine, f = Gender::feminine;
  static const std::vector<Noun> all = {
      {"man", "men", "आदमी", m, person},
      {"woman", "women", "औरत", f, person},
      {"boy", "boys", "लड़का", m, person},
      {"girl", "girls", "लड़की", f, person},
      {"child", "children", "बच्चा", m, person},
      {"king", "kings", "राजा", m, person, false, false},
      {"queen", "queens", "रानी", f, person},
      {"farmer", "farmers", "किसान", m, person},
      {"teacher", "teachers", "शिक्षक", m, person},
      {"thief", "thieves", "चोर", m, person},
      {"soldier", "soldiers", "सिपाही", m, person},
      {"dog", "dogs", "कुत्ता", m, animal},
      {"cat", "cats", "बिल्ली", f, animal},
      {"horse", "horses", "घोड़ा", m, animal},
      {"cow", "cows", "गाय", f, animal},
      {"elephant", "elephants", "हाथी", m, animal},
      {"monkey", "monkeys", "बंदर", m, animal},
      {"lion", "lions", "शेर", m, animal},
      {"goat", "goats", "बकरी", f, animal},
      {"bird", "birds", "चिड़िया", f, animal},
      {"bear", "bears", "भालू", m, animal},
      {"mouse", "mice", "चूहा", m, animal},
      {"Ram", "", "राम", m, person, true},
      {"Sita", "", "सीता", f, person, true},
      {"Mohan", "", "मोहन", m, person, true},
      {"Radha", "", "राधा", f, person, true},
      {"apple", "apples", "सेब", m, food | goods | cuttable},
      {"mango", "mangoes", "आम", m, food | goods | cuttable},
      {"banana", "bananas", "केला", m, food | goods | cuttable},
      {"egg", "eggs", "अंडा", m, food | goods | fragile},
      {"bread", "", "रोटी", f, food | goods | handmade | cuttable},
      {"rice", "", "चावल", m, food | goods},
      {"water", "", "पानी", m, drink},
      {"milk", "", "दूध", m, drink | goods},
      {"tea", "", "चाय", f, drink | goods | handmade},
      {"book", "books", "किताब", f, text | goods | object | opening},
      {"letter", "letters", "चिट्ठी", f, text | opening},
      {"story", "stories", "कहानी", f, text},
      {"poem", "poems", "कविता", f, text},
      {"door", "doors", "दरवाज़ा", m, object | opening | fragile | handmade},
      {"window", "windows", "खिड़की", f, object | opening | fragile},
      {"box", "boxes", "डिब्बा", m, object | goods | opening | fragile | handmade},
      {"shirt", "shirts", "कमीज़", f, object | goods | washable | handmade},
      {"hat", "hats", "टोपी", f, object | goods | washable | handmade},
      {"toy", "toys", "खिलौना", m, object | goods | fragile | washable | handmade},
      {"plate", "plates", "थाली", f, object | goods | fragile | washable},
      {"picture", "pictures", "तस्वीर", f, object | goods | handmade},
      {"chair", "chairs", "कुर्सी", f, object | goods | fragile | handmade},
      {"flower", "flowers", "फूल", m, object | goods | cuttable},
      {"tree", "trees", "पेड़", m, object | cuttable},
      {"house", "houses", "घर", m, place},
      {"garden", "gardens", "बाग़", m, place},
      {"village", "villages", "गाँव", m, place},
      {"city", "cities", "शहर", m, place},
      {"forest", "forests", "जंगल", m, place},
      {"school", "schools", "स्कूल", m, place},
      {"market", "markets", "बाज़ार", m, place},
      {"room", "rooms", "कमरा", m, place},
      {"river", "rivers", "नदी", f, place},
  };
  return all;
}

inline const std::vector<Adjective>& adjectives() {
  static const std::vector<Adjective> all = {
      {"good", "अच्छा", 0, creature | thing | place},
      {"beautiful", "सुंदर", 0, creature | object | text | place},
      {"clever", "चालाक", 0, creature},
      {"brave", "बहादुर", 0, creature},
      {"lazy", "आलसी", 0, creature},
      {"sweet", "मीठा", 0, food},
      {"hot", "गरम", 0, drink},
      {"cold", "ठंडा", 0, drink},
      {"hungry", "भूखा", 1, creature},
      {"happy", "ख़ुश", 1, creature},
      {"sad", "उदास", 1, creature},
      {"angry", "नाराज़", 1, creature},
      {"poor", "ग़रीब", 1, person},
      {"rich", "अमीर", 1, person},
      {"dirty", "गंदा", 1, object | place},
      {"big", "बड़ा", 2, creature | object | place},
      {"small", "छोटा", 2, creature | object | place},
      {"fat", "मोटा", 2, creature},
      {"long", "लंबा", 2, text},
      {"old", "बूढ़ा", 3, creature | object | text | place, "पुराना"},
      {"young", "जवान", 3, creature},
      {"new", "नया", 3, object | text | place},
      {"cheap", "सस्ता", 4, goods},
      {"expensive", "महँगा", 4, goods},
      {"black", "काला", 5, animal | object},
      {"white", "सफ़ेद", 5, animal | object},
      {"red", "लाल", 5, object},
      {"blue", "नीला", 5, object},
  };
  return all;
}

inline const std::vector<Verb>& verbs() {
  constexpr Frame none = Frame::intransitive, one = Frame::transitive, two = Frame::ditransitive;
  constexpr Gender m = Gender::masculine, f = Gender::feminine;
  constexpr HindiVerb kar = {"कर", "किया", "की"};
  constexpr Usage marks = {.always_marks = true}, plain = {.ergative = false};
  constexpr auto compound = [](std::string_view marker, std::string_view noun, Gender gender,
                               bool stative = false) {
    return Usage{.marker = marker,
                 .before = noun,
                 .before_is_noun = true,
                 .before_gender = gender,
                 .stative = stative};
  };
  static const std::vector<Verb> all = {
      // somebody and somebody: only the order of the English words says who does what
      {"bite", "bites", "bit", "biting", one, creature, creature, {"काट"}, marks},
      {"see",
       "sees",
       "saw",
       "seeing",
       one,
       creature,
       creature | food | drink | goods | object,
       {"देख"},
       {.stative = true}},
      {"hit", "hits", "hit", "hitting", one, creature, creature, {"मार"}, marks},
      {"call", "calls", "called", "calling", one, creature, creature, {"बुला"}, marks},
      {"catch", "catches", "caught", "catching", one, creature, creature, {"पकड़"}},
      {"stop", "stops", "stopped", "stopping", one, creature, creature, {"रोक"}, marks},
      {"save", "saves", "saved", "saving", one, creature, creature, {"बचा"}, marks},
      {"push", "pushes", "pushed", "pushing", one, creature, creature, {"धकेल"}, marks},
      {"scare", "scares", "scared", "scaring", one, creature, creature, {"डरा"}, marks},
      {"chase", "chases", "chased", "chasing", one, creature, creature, kar, compound("का", "पीछा", m)},
      {"help", "helps", "helped", "helping", one, creature, creature, kar, compound("का", "मदद", f)},
      {"attack", "attacks", "attacked", "attacking", one, creature, creature, kar, compound("पर", "हमला", m)},
      {"love", "loves", "loved", "loving", one, creature, creature, kar, compound("से", "प्यार", m, true)},
      {"hate", "hates", "hated", "hating", one, creature, creature, kar, compound("से", "नफ़रत", f, true)},
      {"meet",
       "meets",
       "met",
       "meeting",
       one,
       creature,
       creature,
       {"मिल"},
       {.marker = "से", .ergative = false}},
      {"fear",
       "fears",
       "feared",
       "fearing",
       one,
       creature,
       creature,
       {"डर"},
       {.marker = "से", .ergative = false, .stative = true}},
      {"fight",
       "fights",
       "fought",
       "fighting",
       one,
       creature,
       creature,
       {"लड़"},
       {.marker = "से", .ergative = false}},
      // somebody and something
      {"eat", "eats", "ate", "eating", one, creature, food, {"खा"}},
      {"drink", "drinks", "drank", "drinking", one, creature, drink, {"पी", "पिया", "पी", "पि"}},
      {"read", "reads", "read", "reading", one, person, text, {"पढ़"}},
      {"write", "writes", "wrote", "writing", one, person, text, {"लिख"}},
      {"buy", "buys", "bought", "buying", one, person, goods | animal, {"ख़रीद"}},
      {"sell", "sells", "sold", "selling", one, person, goods | animal, {"बेच"}},
      {"steal", "steals", "stole", "stealing", one, creature, goods, {"चुरा"}},
      {"bring", "brings", "brought", "bringing", one, creature, goods, {"ला"}, plain},
      {"open", "opens", "opened", "opening", one, creature, opening, {"खोल"}},
      {"close", "closes", "closed", "closing", one, person, opening, kar, {.before = "बंद"}},
      {"make", "makes", "made", "making", one, person, handmade, {"बना"}},
      {"wash", "washes", "washed", "washing", one, person, washable, {"धो"}},
      {"break", "breaks", "broke", "breaking", one, creature, fragile, {"तोड़"}},
      {"cut", "cuts", "cut", "cutting", one, person, cuttable, {"काट"}},
      {"give", "gives", "gave", "giving", two, person, goods, {"दे", "दिया", "दी"}},
      {"show", "shows", "showed", "showing", two, person, goods | text, {"दिखा"}},
      // somebody alone
      {"sleep", "sleeps", "slept", "sleeping", none, creature, 0, {"सो"}, plain},
      {"run", "runs", "ran", "running", none, creature, 0, {"दौड़"}, plain},
      {"laugh", "laughs", "laughed", "laughing", none, person, 0, {"हँस"}, plain},
      {"cry", "cries", "cried", "crying", none, person, 0, {"रो"}, plain},
      {"go", "goes", "went", "going", none, creature, 0, {"जा", "गया", "गई"}, plain},
      {"come", "comes", "came", "coming", none, creature, 0, {"आ"}, plain},
      {"dance", "dances", "danced", "dancing", none, creature, 0, {"नाच"}, plain},
      {"fall", "falls", "fell", "falling", none, creature, 0, {"गिर"}, plain},
  };
  return all;
}

inline const std::vector<Pronoun>& pronouns() {
  constexpr Gender m = Gender::masculine, f = Gender::feminine;
  static const std::vector<Pronoun> all = {
      {"I", "me", "मैं", "मैंने", "मुझे", "मुझसे", "मेरा", "मुझ पर", {m, false, true}, false},
      {"we", "us", "हम", "हमने", "हमें", "हमसे", "हमारा", "हम पर", {m, true, true}, false},
      {"you", "you", "आप", "आपने", "आपको", "आपसे", "आपका", "आप पर", {m, true, false}, false},
      {"he", "him", "वह", "उसने", "उसे", "उससे", "उसका", "उस पर", {m, false, false}, true},
      {"she", "her", "वह", "उसने", "उसे", "उससे", "उसका", "उस पर", {f, false, false}, true},
      {"they", "them", "वे", "उन्होंने", "उन्हें", "उनसे", "उनका", "उन पर", {m, true, false}, false},
  };
  return all;
}

enum class Tense { past, present, progressive, future };

inline const std::vector<TimeWord>& time_words() {
  constexpr unsigned past = 1, present = 2, progressive = 4, future = 8;
  static const std::vector<TimeWord> all = {
      {"yesterday", "कल", past},   {"tomorrow", "कल", future}, {"today", "आज", past | progressive | future},
      {"now", "अभी", progressive}, {"daily", "रोज़", present},  {"often", "अक्सर", present},
  };
  return all;
}

inline const std::vector<Preposition>& prepositions() {
  static const std::vector<Preposition> all = {
      {"in", "में"}, {"near", "के पास"}, {"behind", "के पीछे"}, {"to", ""}};
  return all;
}

namespace detail {

template <class Word>
const Word& find(const std::vector<Word>& words, std::string_view english, std::string_view Word::* key,
                 const char* what) {
  for (const Word& word : words)
    if (word.*key == english) return word;
  throw std::invalid_argument("the grammar has no " + std::string(what) + " \"" + std::string(english) +
                              "\"");
}

}  // namespace detail

/// A word of the lexicon by its English base form.
inline const Noun& noun(std::string_view english) {
  return detail::find(nouns(), english, &Noun::english, "noun");
}
inline const Adjective& adjective(std::string_view english) {
  return detail::find(adjectives(), english, &Adjective::english, "adjective");
}
inline const Verb& verb(std::string_view english) {
  return detail::find(verbs(), english, &Verb::english, "verb");
}
inline const Pronoun& pronoun(std::string_view english) {
  return detail::find(pronouns(), english, &Pronoun::subject, "pronoun");
}
inline const TimeWord& time_word(std::string_view english) {
  return detail::find(time_words(), english, &TimeWord::english, "word for time");
}
inline const Preposition& preposition(std::string_view english) {
  return detail::find(prepositions(), english, &Preposition::english, "preposition");
}

}  // namespace translate
