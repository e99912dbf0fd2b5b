/** What a newcomer does first, in order. */
export const deeds = {
  cart: 'A guest fills a cart',
  pay: 'and pays: the hub dispenses, until the order is READY',
  collect: 'The bin opens, and hands take the items: COMPLETED',
} as const
export type Deed = keyof typeof deeds
export const isDeed = (word: string): word is Deed => Object.hasOwn(deeds, word)

/** The commands for them. A shell needs to know nothing: neither variables nor curl. */
export const lineToTry = (deed: Deed, dataDir: string, standardDir: string): string =>
  `npm run try -- ${deed}${dataDir === standardDir ? '' : ` --data '${dataDir}'`}`

export const formatLinesToTry = (dataDir: string, standardDir: string): string =>
  (Object.entries(deeds) as [Deed, string][])
    .map(([deed, words]) => `  ${lineToTry(deed, dataDir, standardDir).padEnd(28)} # ${words}`)
    .join('\n')
