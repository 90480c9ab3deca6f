#pragma once
// How Hindi words change: nouns by number and case, adjectives by gender, number and case, verbs by tense,
// gender, number and person. Regular endings are rules here; the few verbs that are not regular carry their
// own stems.

#include <string>
#include <string_view>

namespace translate {

enum class Gender { masculine, feminine };

/// What a verb agrees with.
struct Agreement {
  Gender gender = Gender::masculine;
  bool plural = false;
  bool first_person = false;
};

namespace detail {

inline std::string joined(std::string_view stem, std::string_view ending) {
  return std::string(stem) + std::string(ending);
}

/// `word` without its last letters `ending`.
inline std::string_view without(std::string_view word, std::string_view ending) {
  return word.substr(0, word.size() - ending.size());
}

/// Whether a regular stem ends in a vowel, so that the next one is written as a letter and not as a sign: खा,
/// सो, आ.
inline bool ends_in_vowel(std::string_view stem) {
  return stem.ends_with("ा") || stem.ends_with("ो") || stem.ends_with("आ");
}

}  // namespace detail

/// A noun in its case: oblique before a postposition (ने, को, में ...), direct elsewhere.
/// `declines` is false for the few masculine nouns in -ा that keep it: राजा.
inline std::string decline(std::string_view noun, Gender gender, bool plural, bool oblique,
                           bool declines = true) {
  using detail::joined;
  using detail::without;
  if (gender == Gender::masculine) {
    if (noun.ends_with("ा") && declines) {  // कुत्ता: कुत्ते, कुत्ते, कुत्तों
      if (!plural && !oblique) return std::string(noun);
      return joined(without(noun, "ा"), plural && oblique ? "ों" : "े");
    }
    if (!plural || !oblique) return std::string(noun);                  // आदमी, घर
    if (noun.ends_with("ा")) return joined(noun, "ओं");                  // राजाओं
    if (noun.ends_with("ी")) return joined(without(noun, "ी"), "ियों");  // आदमियों
    if (noun.ends_with("ू")) return joined(without(noun, "ू"), "ुओं");      // आलुओं
    return joined(noun, "ों");                                           // घरों
  }
  if (!plural) return std::string(noun);
  if (noun.ends_with("िया"))  // चिड़ियाँ, चिड़ियों
    return oblique ? joined(without(noun, "ा"), "ों") : joined(noun, "ँ");
  if (noun.ends_with("ी")) return joined(without(noun, "ी"), oblique ? "ियों" : "ियाँ");  // लड़कियाँ
  if (noun.ends_with("ा")) return joined(noun, oblique ? "ओं" : "एँ");                    // कविताएँ
  return joined(noun, oblique ? "ों" : "ें");                                              // औरतें
}

/// An adjective (or a possessive: मेरा) before its noun. Those in -ा agree, the others never change: लाल, सुंदर.
inline std::string agree(std::string_view adjective, Gender gender, bool plural, bool oblique) {
  if (!adjective.ends_with("ा")) return std::string(adjective);
  const bool feminine = gender == Gender::feminine;
  if (!feminine && !plural && !oblique) return std::string(adjective);
  if (adjective.ends_with("या"))  // नया: नए, नई
    return detail::joined(detail::without(adjective, "या"), feminine ? "ई" : "ए");
  return detail::joined(detail::without(adjective, "ा"), feminine ? "ी" : "े");
}

/// The stems of a verb. Most have one; कर, दे, जा and पी have others.
struct HindiVerb {
  std::string_view stem;             // काट: habitual and progressive
  std::string_view perfective = {};  // where irregular, without its ending: किया, दिया, गया, पिया
  std::string_view feminine = {};    // ... and its feminine singular: की, दी, गई, पी
  std::string_view future = {};      // ... and the stem of the future: पि
};

/// काटा, काटे, काटी, काटीं; खाया, खाए, खाई, खाईं.
inline std::string perfective(const HindiVerb& verb, const Agreement& with) {
  using detail::joined;
  using detail::without;
  const bool feminine = with.gender == Gender::feminine;
  if (!verb.perfective.empty()) {
    if (feminine) return with.plural ? joined(verb.feminine, "ं") : std::string(verb.feminine);
    return with.plural ? joined(without(verb.perfective, "या"), "ए") : std::string(verb.perfective);
  }
  if (detail::ends_in_vowel(verb.stem))
    return joined(verb.stem, feminine ? (with.plural ? "ईं" : "ई") : (with.plural ? "ए" : "या"));
  return joined(verb.stem, feminine ? (with.plural ? "ीं" : "ी") : (with.plural ? "े" : "ा"));
}

/// है, हैं, हूँ.
inline std::string_view is(const Agreement& with) {
  return with.plural ? "हैं" : with.first_person ? "हूँ" : "है";
}

/// काटता है, काटते हैं, काटती है; मैं काटता हूँ. Denied, the auxiliary goes, and the feminine plural shows it: काटतीं.
inline std::string habitual(const HindiVerb& verb, const Agreement& with, bool denied) {
  const bool feminine = with.gender == Gender::feminine;
  if (denied)
    return detail::joined(verb.stem, feminine ? (with.plural ? "तीं" : "ती") : with.plural ? "ते" : "ता");
  return detail::joined(verb.stem, feminine ? "ती " : with.plural ? "ते " : "ता ") + std::string(is(with));
}

/// काट रहा है, काट रहे हैं, काट रही है.
inline std::string progressive(const HindiVerb& verb, const Agreement& with) {
  const bool feminine = with.gender == Gender::feminine;
  return detail::joined(verb.stem, feminine      ? " रही "
                                   : with.plural ? " रहे "
                                                 : " रहा ") +
         std::string(is(with));
}

/// काटेगा, काटेंगे, काटेगी, काटेंगी; मैं काटूँगा. After a vowel the ending is written with letters: खाएगा, खाऊँगा.
inline std::string future(const HindiVerb& verb, const Agreement& with) {
  const bool feminine = with.gender == Gender::feminine;
  const std::string_view gender = feminine ? "गी" : with.plural ? "गे" : "गा";
  if (verb.stem == "दे")  // दूँगा, देगा, देंगे
    return detail::joined(with.plural ? "दें" : with.first_person ? "दूँ" : "दे", gender);
  const std::string_view stem = verb.future.empty() ? verb.stem : verb.future;
  const bool letter = !verb.future.empty() || detail::ends_in_vowel(stem);
  const std::string_view person = letter ? (with.plural         ? "एँ"
                                            : with.first_person ? "ऊँ"
                                                                : "ए")
                                         : (with.plural         ? "ें"
                                            : with.first_person ? "ूँ"
                                                                : "े");
  return detail::joined(stem, person) + std::string(gender);
}

}  // namespace translate
