import { demoPlaces } from './places.ts'

/** The first steps of a newcomer, in order. */
export const steps = {
  cart: 'A guest fills a cart',
  pay: 'and pays: the hub dispenses, until the order is READY',
  collect: 'The bin opens, and hands take the items: COMPLETED',
} as const
export type Step = keyof typeof steps
export const isStep = (word: string): word is Step => Object.hasOwn(steps, word)

/** The commands for them. They need neither shell variables nor curl. */
const lineToTry = (step: Step, dataDir: string, standardDir: string): string =>
  `npm run try -- ${step}${dataDir === standardDir ? '' : ` --data ${quoted(dataDir)}`}`

/**
 * An operators' command for the demo's cloud, as a shell takes it. A demo with its own DATA_DIR has its database there, and
 * the command reads another one without it.
 */
export const operatorLine = (dataDir: string, standardDir: string): string =>
  `${dataDir === standardDir ? '' : `DATA_DIR=${quoted(demoPlaces(dataDir).cloud)} `}npx larder hubs list`

const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

export const formatLinesToTry = (dataDir: string, standardDir: string): string =>
  (Object.entries(steps) as [Step, string][])
    .map(([step, words]) => `  ${lineToTry(step, dataDir, standardDir).padEnd(28)} # ${words}`)
    .join('\n')
