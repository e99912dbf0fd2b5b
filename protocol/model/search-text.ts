/** Raise it when `searchText` returns another text for some name: stored texts are then made again (`search-names.ts`). */
export const SEARCH_TEXT_VERSION = 2

/** Letters that Unicode does not decompose, as people type them on another keyboard. */
const LETTERS: Readonly<Record<string, string>> = {
  æ: 'ae',
  œ: 'oe',
  ß: 'ss',
  þ: 'th',
  ð: 'd',
  đ: 'd',
  ɖ: 'd',
  ħ: 'h',
  ı: 'i',
  ł: 'l',
  ŋ: 'n',
  ø: 'o',
  ŧ: 't',
  ſ: 's',
  ς: 'σ',
}
const LETTER = new RegExp(`[${Object.keys(LETTERS).join('')}]`, 'g')

const APOSTROPHES = /[\u2018-\u201B\u2032\u02B9\u02BB\u02BC\u0060]/g
const QUOTES = /[\u201C-\u201F\u2033]/g
const HYPHENS = /[\u2010-\u2015\u2212\u2043]/g
/** Characters without a shape, such as the zero-width space and the soft hyphen. The joiner of emoji makes one sign of several. */
const SHAPELESS = /(?!\u200D)\p{Cf}/gu

/**
 * Folds a name for search and for order: one case, no accents, plain apostrophes and hyphens, so that `creme` finds `Crème` and
 * `Lay’s` finds `Lay's`. Made here and not by the databases, which fold case differently from each other.
 */
export const searchText = (text: string): string =>
  text
    .normalize('NFKD')
    .replaceAll(/\p{Mn}/gu, '')
    .replaceAll(SHAPELESS, '')
    .replaceAll(APOSTROPHES, "'")
    .replaceAll(QUOTES, '"')
    .replaceAll(HYPHENS, '-')
    // Through capitals, so that ß and SS are one.
    .toUpperCase()
    .toLowerCase()
    .replaceAll(LETTER, (letter) => LETTERS[letter]!)
    .replaceAll(/\s+/gu, ' ')
    .trim()
