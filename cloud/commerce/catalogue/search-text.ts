/**
 * A name as it is searched and put in order: in one case, without accents and the like, so that "creme" finds "Crème". Made
 * here and not by the databases, whose own ideas of case differ.
 */
export const searchText = (text: string): string =>
  text
    .normalize('NFKD')
    .replaceAll(/\p{Mn}/gu, '')
    // Through capitals, so that ß and SS are one; a sigma is a sigma wherever in its word.
    .toUpperCase()
    .toLowerCase()
    .replaceAll('ς', 'σ')
    .replaceAll(/\s+/gu, ' ')
    .trim()
