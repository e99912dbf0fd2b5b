import { readFileSync } from 'node:fs'
import type { Log } from '../../protocol/model/log.ts'
import type { Clock, Runtime } from '../../protocol/model/runtime.ts'
import { replaceText } from '../replace-text.ts'
import { parsePeople, type Person } from './people.ts'
import type { SessionFile } from './sessions.ts'
import { parseArgs } from 'node:util'
import { normalName } from '../../protocol/model/name-text.ts'
import { randomHex } from '../../protocol/model/ids.ts'
import { digestOf } from './token.ts'

/** The text of a file; undefined if it does not exist. */
function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

export const sessionFile = (path: string, log: Log): SessionFile => ({
  read() {
    try {
      return textOf(path)
    } catch (error) {
      log.warn({ path, error: String(error) }, 'the sessions of the page cannot be read: people log in again')
      return undefined
    }
  },
  write(text) {
    try {
      replaceText(path, text)
    } catch (error) {
      log.warn({ path, error: String(error) }, 'the sessions of the page cannot be stored')
    }
  },
})

/** The people in a file, read again after `everyMs`. If the file cannot be read, no personal token works. */
export function peopleIn(
  path: string,
  { everyMs, clock, log }: { everyMs: number; clock: Clock; log: Log },
): () => readonly Person[] {
  let known: { people: readonly Person[]; at: number } | undefined
  return () => {
    const at = clock.monotonic()
    if (known === undefined || at - known.at >= everyMs) known = { people: read(), at }
    return known.people
  }

  function read(): readonly Person[] {
    try {
      const text = textOf(path)
      return text === undefined ? [] : parsePeople(text)
    } catch (error) {
      log.warn({ path, error: String(error) }, 'the list of people cannot be read: their tokens are refused')
      return []
    }
  }
}

const PEOPLE_USAGE = `Usage:
  larder people add NAME [--days N]
  larder people list
  larder people remove NAME

People who may use the hub's page and its local API. Each has a token, in addition to the shared token (LOCAL_TOKEN). add prints
the token, which is stored nowhere; --days is its lifetime in days. remove ends a person's token and open sessions within a
second. The log names the person of each action (by).

Options: --config FILE (the configuration of the hub's service, for STORE) or --store PATH.
`

interface PeopleOutcome {
  exitCode: 0 | 1 | 2
  stdout: string
  stderr: string
}

const NAME = /^[\p{L}\p{N}][\p{L}\p{N} .'_-]{0,59}$/u
const DAY_MS = 86_400_000

class Usage extends Error {}

/**
 * Runs `larder people`. `storeOf` finds STORE in the configuration. Prints JSON. Status 1 if the name is
 * unknown (remove) or already exists (add).
 */
export function runPeople(
  args: readonly string[],
  storeOf: (config: string | undefined) => string,
  runtime: Runtime,
): PeopleOutcome {
  if (args.includes('--help')) return { exitCode: 0, stdout: PEOPLE_USAGE, stderr: '' }
  try {
    const { command, name, days, path } = parse(args, storeOf)
    const text = textOf(path)
    const people = text === undefined ? [] : parsePeople(text)
    const { shown, next } = perform({ command, name, days }, people, runtime)
    if (next !== undefined) replaceText(path, `${JSON.stringify(next, null, 2)}\n`)
    return { exitCode: 0, stdout: `${JSON.stringify(shown, null, 2)}\n`, stderr: '' }
  } catch (error) {
    const exitCode = error instanceof Usage ? 2 : 1
    return {
      exitCode,
      stdout: '',
      stderr: `error: ${error instanceof Error ? error.message : String(error)}\n`,
    }
  }
}

interface Asked {
  command: string
  name: string | undefined
  days: number | undefined
}

function parse(
  args: readonly string[],
  storeOf: (config: string | undefined) => string,
): Asked & { path: string } {
  const options = { config: { type: 'string' }, store: { type: 'string' }, days: { type: 'string' } } as const
  let parsed
  try {
    parsed = parseArgs({ args: [...args], options, allowPositionals: true, tokens: true })
  } catch (error) {
    throw new Usage(error instanceof Error ? error.message : String(error))
  }
  const { positionals, values, tokens } = parsed
  const given = tokens.filter((token) => token.kind === 'option')
  for (const { name: option, value } of given) {
    if (normalName(value ?? '') === '') throw new Usage(`--${option} needs a value`)
    if (given.filter((each) => each.name === option).length > 1) throw new Usage(`--${option} is given twice`)
  }
  const [command = '', person, ...rest] = positionals
  const name = person === undefined ? undefined : normalName(person)
  const needsName = command === 'add' || command === 'remove'
  if ((!needsName && command !== 'list') || needsName !== (name !== undefined) || rest.length > 0)
    throw new Usage('not understood: --help shows the commands')
  if (person !== undefined && !NAME.test(person))
    throw new Usage("a name has 1 to 60 letters, digits, blanks and . _ - '")
  if (values.days !== undefined && !/^[1-9]\d{0,3}$/.test(values.days))
    throw new Usage('--days must be a whole number from 1 to 9999')
  const path = `${values.store ?? storeOf(values.config)}.people`
  return { command, name, path, days: values.days === undefined ? undefined : Number(values.days) }
}

function perform(
  { command, name, days }: Asked,
  people: readonly Person[],
  { clock, random }: Runtime,
): { shown: unknown; next?: Person[] } {
  const isNamed = (person: Person): boolean => person.name === name
  const view = ({ name: of, created_at, expires_at }: Person) => ({ name: of, created_at, expires_at })
  if (command === 'list') return { shown: people.map(view) }
  if (command === 'remove') {
    if (!people.some(isNamed)) throw new Error(`no such person: ${name}`)
    return { shown: { name, removed: true }, next: people.filter((person) => !isNamed(person)) }
  }
  if (people.some(isNamed)) throw new Error(`${name} has a token already: remove the person first`)
  const token = randomHex(random, 24)
  const now = clock.now()
  const person: Person = {
    name: name!,
    digest: digestOf(token),
    created_at: new Date(now).toISOString(),
    expires_at: days === undefined ? null : new Date(now + days * DAY_MS).toISOString(),
  }
  return { shown: { ...view(person), token }, next: [...people, person] }
}
