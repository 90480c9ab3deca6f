#pragma once
// A small grammar of English and Hindi: one sentence structure, written down in both languages.
//
//   the old dog bit the man in the garden   ->   बूढ़े कुत्ते ने बाग़ में आदमी को काटा
//   subject     verb object place                subject      place  object   verb
//
// The languages order their words differently, and in English the order alone says who bit whom. The rules of
// the Hindi side, in the order in which hindi() applies them:
//
//   - order: [क्या] subject [time] [place] [recipient को] object [नहीं] verb; adjectives before their noun
//   - ने after the subject of a perfective (past) transitive verb; मिल, डर, लड़, ला and intransitive verbs take
//   none
//   - को after an object that is alive and definite, or human; के, की, से, पर where the verb asks for them
//   - the oblique case before every postposition, through the whole phrase: बूढ़े कुत्ते ने, इन लड़कियों को
//   - the verb agrees with the subject; with ने, with an object that has no postposition (or with the noun of
//   a compound
//     verb: मदद की); otherwise it is masculine singular
//   - past: perfective; present: habitual + है; progressive: रहा + है; future: -एगा
//   - the speaker (I, we) and mixed groups (they, you) are masculine; past "read", "hit", "cut" are told from
//   the present
//     by the subject, and where that is not possible they are past

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "translate/hindi.hpp"
#include "translate/lexicon.hpp"
#include "translate/random.hpp"

namespace translate {

/// A sentence in both languages.
struct TextPair {
  std::string source, target;
};

enum class Determiner { none, the, a, this_, that, my, our, two, three, many };

/// A noun with what stands before it, or a pronoun.
struct NounPhrase {
  Determiner determiner = Determiner::the;
  std::vector<const Adjective*> adjectives;
  const Noun* noun = nullptr;
  bool plural = false;
  const Pronoun* pronoun = nullptr;  // instead of all of the above
};

struct PlacePhrase {
  const Preposition* preposition;
  NounPhrase place;
};

struct Clause {
  NounPhrase subject;
  const Verb* verb = nullptr;
  std::optional<NounPhrase> object, recipient;
  std::optional<PlacePhrase> place;
  const TimeWord* time = nullptr;
  Tense tense = Tense::past;
  bool negative = false;
};

struct Sentence {
  Clause clause;
  bool question = false;
  std::string_view conjunction = {};  // "and", "but", "because": joins a second statement
  std::optional<Clause> second;
};

namespace detail {

/// A text that grows by words.
class Words {
 public:
  void add(std::string_view word) {
    if (word.empty()) return;
    if (!text_.empty()) text_ += ' ';
    text_ += word;
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

// ---- English

inline std::string_view english_of(Determiner determiner, bool plural, char next) {
  switch (determiner) {
    case Determiner::none: return "";
    case Determiner::the: return "the";
    case Determiner::a: return std::string_view("aeiou").find(next) == std::string_view::npos ? "a" : "an";
    case Determiner::this_: return plural ? "these" : "this";
    case Determiner::that: return plural ? "those" : "that";
    case Determiner::my: return "my";
    case Determiner::our: return "our";
    case Determiner::two: return "two";
    case Determiner::three: return "three";
    case Determiner::many: return "many";
  }
  return "";
}

inline void add_english(Words& out, const NounPhrase& phrase, bool subject) {
  if (phrase.pronoun != nullptr) return out.add(subject ? phrase.pronoun->subject : phrase.pronoun->object);
  const std::string_view noun = phrase.plural ? phrase.noun->english_plural : phrase.noun->english;
  const std::string_view first = phrase.adjectives.empty() ? noun : phrase.adjectives.front()->english;
  out.add(english_of(phrase.determiner, phrase.plural, first.front()));
  for (const Adjective* adjective : phrase.adjectives) out.add(adjective->english);
  out.add(noun);
}

/// Whether English says "bites", "does" and "is".
inline bool third_singular(const NounPhrase& subject) {
  return subject.pronoun != nullptr ? subject.pronoun->third_singular : !subject.plural;
}

inline std::string_view english_be(const NounPhrase& subject) {
  if (subject.pronoun != nullptr && subject.pronoun->subject == "I") return "am";
  return third_singular(subject) ? "is" : "are";
}

/// What goes before the subject in a question, and before "not".
inline std::string_view english_auxiliary(const Clause& clause) {
  switch (clause.tense) {
    case Tense::past: return "did";
    case Tense::present: return third_singular(clause.subject) ? "does" : "do";
    case Tense::progressive: return english_be(clause.subject);
    case Tense::future: return "will";
  }
  return "";
}

inline void add_english(Words& out, const Clause& clause, bool question) {
  const Verb& verb = *clause.verb;
  const bool simple = clause.tense == Tense::past || clause.tense == Tense::present;
  const bool auxiliary = !simple || clause.negative || question;
  if (question) out.add(english_auxiliary(clause));
  add_english(out, clause.subject, true);
  if (auxiliary && !question) out.add(english_auxiliary(clause));
  if (clause.negative) out.add("not");
  if (clause.tense == Tense::progressive)
    out.add(verb.present_participle);
  else if (auxiliary)
    out.add(verb.english);
  else if (clause.tense == Tense::past)
    out.add(verb.past);
  else
    out.add(third_singular(clause.subject) ? verb.third_person : verb.english);
  if (clause.object) add_english(out, *clause.object, false);
  if (clause.recipient) {
    out.add("to");
    add_english(out, *clause.recipient, false);
  }
  if (clause.place) {
    out.add(clause.place->preposition->english);
    add_english(out, clause.place->place, false);
  }
  if (clause.time != nullptr) out.add(clause.time->english);
}

// ---- Hindi

inline Agreement agreement_of(const NounPhrase& phrase) {
  if (phrase.pronoun != nullptr) return phrase.pronoun->agreement;
  return {phrase.noun->gender, phrase.plural, false};
}

inline std::string hindi_of(Determiner determiner, Gender gender, bool plural, bool oblique) {
  switch (determiner) {
    case Determiner::none:
    case Determiner::the: return "";
    case Determiner::a: return "एक";
    case Determiner::this_: return oblique ? (plural ? "इन" : "इस") : (plural ? "ये" : "यह");
    case Determiner::that: return oblique ? (plural ? "उन" : "उस") : (plural ? "वे" : "वह");
    case Determiner::my: return agree("मेरा", gender, plural, oblique);
    case Determiner::our: return agree("हमारा", gender, plural, oblique);
    case Determiner::two: return "दो";
    case Determiner::three: return "तीन";
    case Determiner::many: return "कई";
  }
  return "";
}

/// A phrase with a noun, in its case.
inline void add_hindi(Words& out, const NounPhrase& phrase, bool oblique) {
  const Noun& noun = *phrase.noun;
  out.add(hindi_of(phrase.determiner, noun.gender, phrase.plural, oblique));
  for (const Adjective* adjective : phrase.adjectives) {
    const bool other = !adjective->hindi_of_things.empty() && !noun.is(creature);
    out.add(
        agree(other ? adjective->hindi_of_things : adjective->hindi, noun.gender, phrase.plural, oblique));
  }
  out.add(decline(noun.hindi, noun.gender, phrase.plural, oblique, noun.declines));
}

/// A phrase before a postposition; pronouns melt into it: उसने, मुझे, उनसे, हमारी.
inline void add_hindi(Words& out, const NounPhrase& phrase, std::string_view postposition, Gender possessed) {
  if (phrase.pronoun != nullptr) {
    const Pronoun& pronoun = *phrase.pronoun;
    if (postposition == "ने") out.add(pronoun.ergative);
    if (postposition == "को") out.add(pronoun.dative);
    if (postposition == "से") out.add(pronoun.instrumental);
    if (postposition == "पर") out.add(pronoun.locative);
    if (postposition == "का") out.add(agree(pronoun.genitive, possessed, false, false));
    return;
  }
  add_hindi(out, phrase, true);
  out.add(postposition == "का" ? agree(postposition, possessed, false, false) : std::string(postposition));
}

/// Whether the object of `verb` takes a postposition.
inline bool marked(const Verb& verb, const NounPhrase& object) {
  if (verb.frame == Frame::ditransitive) return false;
  if (object.pronoun != nullptr || verb.usage.marker != "को") return true;
  const Noun& noun = *object.noun;
  if (!noun.is(creature)) return false;
  const bool indefinite = object.determiner == Determiner::a || object.determiner == Determiner::two ||
                          object.determiner == Determiner::three || object.determiner == Determiner::many;
  return !indefinite || noun.is(person) || verb.usage.always_marks;
}

inline void add_hindi(Words& out, const Clause& clause) {
  const Verb& verb = *clause.verb;
  const bool ne = clause.tense == Tense::past && verb.usage.ergative;
  const bool has_marked_object = clause.object && marked(verb, *clause.object);

  if (ne)
    add_hindi(out, clause.subject, "ने", Gender::masculine);
  else if (clause.subject.pronoun != nullptr)
    out.add(clause.subject.pronoun->direct);
  else
    add_hindi(out, clause.subject, false);
  if (clause.time != nullptr) out.add(clause.time->hindi);
  if (clause.place) add_hindi(out, clause.place->place, clause.place->preposition->hindi, Gender::masculine);
  if (clause.recipient) add_hindi(out, *clause.recipient, "को", Gender::masculine);
  if (clause.object) {
    if (has_marked_object)
      add_hindi(out, *clause.object, verb.usage.marker, verb.usage.before_gender);
    else
      add_hindi(out, *clause.object, false);
  }
  out.add(verb.usage.before);
  if (clause.negative) out.add("नहीं");

  Agreement with = agreement_of(clause.subject);
  if (ne) {
    with = {};
    if (verb.usage.before_is_noun)
      with.gender = verb.usage.before_gender;
    else if (clause.object && !has_marked_object)
      with = agreement_of(*clause.object);
  }
  switch (clause.tense) {
    case Tense::past: return out.add(perfective(verb.hindi, with));
    case Tense::present: return out.add(habitual(verb.hindi, with, clause.negative));
    case Tense::progressive: return out.add(progressive(verb.hindi, with));
    case Tense::future: return out.add(future(verb.hindi, with));
  }
}

inline std::string_view hindi_conjunction(std::string_view english) {
  return english == "and" ? "और" : english == "but" ? "लेकिन" : "क्योंकि";
}

}  // namespace detail

inline std::string english(const Sentence& sentence) {
  detail::Words out;
  detail::add_english(out, sentence.clause, sentence.question);
  if (sentence.second) {
    out.add(sentence.conjunction);
    detail::add_english(out, *sentence.second, false);
  }
  return out.take() + (sentence.question ? "?" : "");
}

inline std::string hindi(const Sentence& sentence) {
  detail::Words out;
  if (sentence.question) out.add("क्या");
  detail::add_hindi(out, sentence.clause);
  if (sentence.second) {
    out.add(detail::hindi_conjunction(sentence.conjunction));
    detail::add_hindi(out, *sentence.second);
  }
  return out.take() + (sentence.question ? "?" : "");
}

// ---- Sentences by chance

namespace detail {

/// How much decoration a sentence gets, in percent.
struct Richness {
  unsigned adjective = 35, second_adjective = 15, place = 20, time = 12, second_clause = 12;
};

class Writer {
 public:
  Writer(Random& random, const Richness& richness) : random_(random), richness_(richness) {}

  Sentence sentence() {
    Sentence s;
    s.question = random_.chance(18);
    s.clause = clause(s.question);
    if (!s.question && random_.chance(richness_.second_clause)) {
      static constexpr std::string_view conjunctions[] = {"and", "but", "because"};
      s.conjunction = conjunctions[random_.below(3)];
      s.second = clause(false);
    }
    return s;
  }

 private:
  Clause clause(bool question) {
    Clause c;
    // More than half of the sentences are about two creatures, where order alone says who does what to whom.
    const bool reversible = random_.chance(55);
    do c.verb = &random_.pick(verbs());
    while ((c.verb->objects == creature) != reversible);
    c.subject = phrase(c.verb->subjects, true, nullptr);
    if (c.verb->frame != Frame::intransitive) {
      const bool things_only = c.verb->frame == Frame::ditransitive;
      c.object = phrase(c.verb->objects, !things_only && (c.verb->objects & person) != 0, &c.subject);
    }
    if (c.verb->frame == Frame::ditransitive) c.recipient = phrase(person, true, &c.subject);
    c.tense = static_cast<Tense>(random_.below(4));
    if (c.tense == Tense::progressive && c.verb->usage.stative) c.tense = Tense::past;
    c.negative = random_.chance(22);
    const bool looks_past = c.verb->past == c.verb->english && !c.negative && !question;
    if (c.tense == Tense::present && looks_past && !third_singular(c.subject)) c.tense = Tense::past;
    if (random_.chance(richness_.place)) c.place = place(*c.verb, c.subject);
    if (random_.chance(richness_.time)) c.time = time(c);
    return c;
  }

  /// A phrase of one of the topics; as an object it is somebody else than the subject.
  NounPhrase phrase(std::uint32_t topics, bool pronouns_too, const NounPhrase* subject) {
    NounPhrase p;
    if (pronouns_too && random_.chance(16)) {
      p.pronoun = &random_.pick(pronouns());
      if (subject == nullptr || !same_person(*p.pronoun, *subject)) return p;
      p.pronoun = nullptr;
    }
    do p.noun = &random_.pick(nouns());
    while (!p.noun->is(topics) || (p.noun->name && subject != nullptr && subject->noun == p.noun));
    if (p.noun->name) {
      p.determiner = Determiner::none;
      return p;
    }
    const bool countable = !p.noun->english_plural.empty() && !p.noun->is(place_only(topics));
    p.plural = countable && random_.chance(30);
    p.determiner = determiner(p.plural, !p.noun->english_plural.empty(), subject);
    if (random_.chance(richness_.adjective)) {
      p.adjectives.push_back(adjective(*p.noun));
      if (random_.chance(richness_.second_adjective)) {
        const Adjective* other = adjective(*p.noun);
        if (other->rank < p.adjectives[0]->rank) p.adjectives.insert(p.adjectives.begin(), other);
        if (other->rank > p.adjectives.back()->rank) p.adjectives.push_back(other);
      }
    }
    return p;
  }

  static std::uint32_t place_only(std::uint32_t topics) { return topics == translate::place ? topics : 0; }

  /// I see me, we see me, you see you: these are said otherwise in both languages.
  static bool same_person(const Pronoun& pronoun, const NounPhrase& subject) {
    if (subject.pronoun == nullptr) return false;
    const auto first = [](const Pronoun& p) { return p.agreement.first_person; };
    if (first(pronoun) && first(*subject.pronoun)) return true;
    return pronoun.subject == "you" && subject.pronoun->subject == "you";
  }

  Determiner determiner(bool plural, bool countable, const NounPhrase* subject) {
    // Hindi says "my own" where the owner is the subject, so there the possessives are left out.
    const bool owner =
        subject != nullptr && subject->pronoun != nullptr && subject->pronoun->agreement.first_person;
    const std::size_t draw = random_.below(100);
    if (draw < 50) return Determiner::the;
    if (draw < 58) return Determiner::this_;
    if (draw < 66) return Determiner::that;
    if (draw < 76 && !owner) return draw < 72 ? Determiner::my : Determiner::our;
    if (!countable) return Determiner::the;
    if (!plural) return Determiner::a;
    return draw % 3 == 0 ? Determiner::two : draw % 3 == 1 ? Determiner::three : Determiner::many;
  }

  const Adjective* adjective(const Noun& noun) {
    const Adjective* a = nullptr;
    do a = &random_.pick(adjectives());
    while (!noun.is(a->topics));
    return a;
  }

  PlacePhrase place(const Verb& verb, const NounPhrase& subject) {
    const bool goes = verb.english == "go" || verb.english == "come";
    const Preposition* preposition = &prepositions()[3];
    if (!goes || random_.chance(30)) preposition = &prepositions()[goes ? 1 : random_.below(3)];
    NounPhrase where;
    do where = phrase(translate::place, false, &subject);
    while (preposition->english == "to" && (where.noun->english == "river" || where.noun->english == "room"));
    return {preposition, where};
  }

  const TimeWord* time(const Clause& c) {
    if (c.verb->usage.stative && c.tense == Tense::present) return nullptr;
    const TimeWord* t = nullptr;
    do t = &random_.pick(time_words());
    while ((t->tenses & (1u << static_cast<unsigned>(c.tense))) == 0);
    return t;
  }

  Random& random_;
  const Richness& richness_;
};

}  // namespace detail

/// Sentence number `index` of the endless list that belongs to `seed`.
inline Sentence random_sentence(std::uint64_t seed, std::uint64_t index,
                                const detail::Richness& richness = {}) {
  Random random(seed, index);
  return detail::Writer(random, richness).sentence();
}

/// The same words with subject and object exchanged, where that is English and means something else in Hindi:
/// a model that sees words without their order takes the two for one.
inline std::optional<Sentence> twin_of(const Sentence& sentence) {
  const Clause& clause = sentence.clause;
  if (sentence.second || !clause.object || clause.verb->objects != creature) return {};
  if (clause.subject.pronoun != nullptr || clause.object->pronoun != nullptr) return {};
  if (clause.subject.plural != clause.object->plural) return {};
  Sentence twin = sentence;
  std::swap(twin.clause.subject, *twin.clause.object);
  if (hindi(twin) == hindi(sentence)) return {};
  return twin;
}

/// Sentence number `index`, written down.
inline TextPair random_pair(std::uint64_t seed, std::uint64_t index, const detail::Richness& richness = {}) {
  const Sentence sentence = random_sentence(seed, index, richness);
  return {english(sentence), hindi(sentence)};
}

}  // namespace translate
