import { deadLetters, dropDeadLetter, replayDeadLetter } from '../gateway/dead-letters.ts'
import { hubDomain } from '../hub-domain.ts'
import { UsageError } from '../platform/settings/usage-error.ts'
import { COMMAND_LINE, type CommandLine, type Invocation, type Options } from './command-line.ts'
import { hubOf, numberOf } from './options.ts'

const usage = `Usage:
  larder dead-letters list [--hub ID] [--limit N]
  larder dead-letters replay IDS | --hub ID
  larder dead-letters drop IDS | --hub ID

Reports of hubs that the cloud could not apply. The cloud stores each with its error and applies the later ones. \`replay\`
applies entries again, the oldest first, each in its own transaction. An entry that succeeds leaves the list; an entry that
fails stays with the new error. The cloud then asks the hub for its whole state. \`drop\` deletes entries and records it in the
audit log. IDS: ids separated by commas. --limit: 1 to 10000 (default 100).

Prints JSON. Exit code 1 if an entry cannot be applied or does not exist.`

const STANDARD_LIMIT = 100
const MAX_LIMIT = 10_000

/** Dead letters, for operators. */
export const deadLetterCommands: CommandLine = {
  usage,
  subcommands: {
    list: {
      options: ['hub', 'limit'],
      run: async ({ q, options }) =>
        deadLetters(q, {
          hubId: options['hub'] === undefined ? undefined : await hubOf({ q, options }),
          limit: numberOf(options, 'limit', 1, MAX_LIMIT) ?? STANDARD_LIMIT,
        }),
    },
    replay: {
      options: ['hub'],
      positionals: ['ids'],
      hasOptionalPositionals: true,
      run: (invocation) =>
        forEach(invocation, (id) =>
          replayDeadLetter(invocation.context, hubDomain(), { id, actor: COMMAND_LINE }),
        ),
      isFailure,
    },
    drop: {
      options: ['hub'],
      positionals: ['ids'],
      hasOptionalPositionals: true,
      run: (invocation) =>
        forEach(invocation, async (id) => {
          const isThere = await dropDeadLetter(invocation.context, hubDomain(), { id, actor: COMMAND_LINE })
          return { id, outcome: isThere ? 'dropped' : 'not_found' }
        }),
      isFailure,
    },
  },
}

interface Done {
  id: number
  outcome: string
}

async function forEach<T extends Done>(
  invocation: Invocation,
  act: (id: number) => Promise<T>,
): Promise<T[]> {
  const done: T[] = []
  for (const id of await chosen(invocation)) done.push(await act(id))
  return done
}

/** The ids that the command names, or all ids of a hub. */
async function chosen({ q, options }: Invocation): Promise<number[]> {
  if ((options['ids'] === undefined) === (options['hub'] === undefined))
    throw new UsageError('ids are needed, or --hub')
  if (options['hub'] === undefined) return idsOf(options)
  return (await deadLetters(q, { hubId: await hubOf({ q, options }) })).map(({ id }) => id)
}

function idsOf(options: Options): number[] {
  const parts = (options['ids'] ?? '').split(',').map((part) => part.trim())
  if (!parts.every((part) => /^[1-9]\d{0,14}$/.test(part)))
    throw new UsageError(`ids are whole numbers separated by commas: ${options['ids']}`)
  return [...new Set(parts.map(Number))].toSorted((a, b) => a - b)
}

function isFailure(output: unknown): boolean {
  return (output as readonly Done[]).some(({ outcome }) => outcome === 'failed' || outcome === 'not_found')
}
