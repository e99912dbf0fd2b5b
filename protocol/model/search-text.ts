/**
 * Raise it if `searchText` returns another text for some name: the stored texts are then computed again
 * (`search-names.ts`).
 */
export const SEARCH_TEXT_VERSION = 2

/** Letters that Unicode does not decompose, in the form that people type on another keyboard. */
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
/**
 * Characters without a shape, such as the zero-width space and the soft hyphen. The joiner stays, because it joins
 * several emoji into one.
 */
const SHAPELESS = /(?!\u200D)\p{Cf}/gu

/**
 * Folds a name for search and for sorting: one case, no accents, plain apostrophes and hyphens. So `creme` finds
 * `Crème`, and `Lay’s` finds `Lay's`. Databases fold case differently from each other, so this is done here.
 */
export const searchText = (text: string): string =>
  text
    .normalize('NFKD')
    .replaceAll(/\p{Mn}/gu, '')
    .replaceAll(SHAPELESS, '')
    .replaceAll(APOSTROPHES, "'")
    .replaceAll(QUOTES, '"')
    .replaceAll(HYPHENS, '-')
    // By way of capitals, so that ß and SS are equal.
    .toUpperCase()
    .toLowerCase()
    .replaceAll(LETTER, (letter) => LETTERS[letter]!)
    .replaceAll(/\s+/gu, ' ')
    .trim()
