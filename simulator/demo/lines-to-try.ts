import { demoPlaces } from './places.ts'

/** The first steps of a newcomer, in order. */
export const deeds = {
  cart: 'A guest fills a cart',
  pay: 'and pays: the hub dispenses, until the order is READY',
  collect: 'The bin opens, and hands take the items: COMPLETED',
} as const
export type Deed = keyof typeof deeds
export const isDeed = (word: string): word is Deed => Object.hasOwn(deeds, word)

/** The commands for them. A shell needs to know nothing: neither variables nor curl. */
export const lineToTry = (deed: Deed, dataDir: string, standardDir: string): string =>
  `npm run try -- ${deed}${dataDir === standardDir ? '' : ` --data ${quoted(dataDir)}`}`

/**
 * An operators' command for the demo's cloud, as a shell takes it. A demo with its own DATA_DIR has its database there, and
 * the command reads another one without it.
 */
export const operatorLine = (dataDir: string, standardDir: string): string =>
  `${dataDir === standardDir ? '' : `DATA_DIR=${quoted(demoPlaces(dataDir).cloud)} `}npx larder hubs list`

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

export const formatLinesToTry = (dataDir: string, standardDir: string): string =>
  (Object.entries(deeds) as [Deed, string][])
    .map(([deed, words]) => `  ${lineToTry(deed, dataDir, standardDir).padEnd(28)} # ${words}`)
    .join('\n')
