import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { progressOn } from '../../protocol/model/progress.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { isFileProblem, problemOf } from '../../protocol/model/system-error.ts'
import { Demo } from '../demo/demo.ts'
import { demoPorts, readDemoSettings } from '../demo/settings.ts'
import { AnswerError, type Simulator, simulatorAt, Unreachable } from '../interface/client.ts'
import { type JunitCase, junitReport } from '../junit.ts'
import type { Run } from './results.ts'
import type { Parameters } from './schema.ts'
import { readScenario, type Scenario, ScenarioError } from './text.ts'
import { runAndWatch, stepLine } from './watch.ts'

const usage = `npm run simulator -- scenario run FILE… [--report FILE] [--attach URL] [--set name=value]…
npm run simulator -- scenario check FILE…

run      runs the scenarios one after the other, each in a hub that is put to rights first. Without --attach they have a demo
         of their own, with fast mechanisms and the settings that they ask for, which ends with them.
check    says what is wrong with the files; nothing is run.

--report  writes what came of them as JUnit's XML.
--attach  the address of a simulator that runs, such as the demo's: http://127.0.0.1:8082
--hub     at which of its hubs (1).
--set     another value for a parameter of the scenarios.

Its exit status is 0 where all have passed, 1 where one has not, 2 where the command or a file is wrong.`

interface File {
  path: string
  text: string
  scenario: Scenario
}

export async function scenarioCommand(argv: readonly string[], runtime: Runtime): Promise<void> {
  try {
    process.exitCode = await runCommand(argv, runtime, (text) => void process.stdout.write(`${text}\n`))
  } catch (error) {
    if (
      ![UsageError, Unreachable, AnswerError].some((kind) => error instanceof kind) &&
      !isFileProblem(error)
    )
      throw error
    process.stderr.write(`${problemOf(error)}\n`)
    process.exitCode = 2
  }
}

class UsageError extends Error {}

/** Returns the exit status. */
export async function runCommand(
  argv: readonly string[],
  runtime: Runtime,
  print: (text: string) => void,
): Promise<number> {
  const { verb, paths, values } = read(argv)
  if (values.help) {
    print(usage)
    return 0
  }
  if (verb !== 'run' && verb !== 'check') throw new UsageError(usage)
  if (paths.length === 0) throw new UsageError('scenario needs the name of a file\n\n' + usage)
  const parameters = Object.fromEntries((values.set ?? []).map(settingOf))
  const files = paths.map((path) => readFile(path, parameters))
  requireKnown(parameters, files)
  if (verb === 'check') {
    for (const { path, scenario } of files) print(`${path}: ${scenario.name}, ${scenario.steps.length} steps`)
    return 0
  }
  const hubId = Number(values.hub ?? 1)
  const stopping = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stopping.abort())
  const groups = values.attach === undefined ? bySettings(files) : [files]
  const runs: Run[] = []
  const report = (others: readonly JunitCase[] = []): void => {
    const cases = [...runs.map(caseOf), ...others]
    if (values.report !== undefined) writeFileSync(values.report, junitReport('scenarios', cases))
  }
  try {
    for (const group of groups) {
      if (stopping.signal.aborted) break
      const place =
        values.attach === undefined
          ? await ownDemo(group[0]!.scenario.settings, runtime, stopping.signal)
          : undefined
      try {
        const simulator = place?.simulator ?? simulatorAt(values.attach!)
        for (const file of group)
          runs.push(
            await runFile(file, { simulator, hubId, parameters, runtime, stopping: stopping.signal, print }),
          )
      } finally {
        await place?.end()
      }
    }
  } catch (error) {
    report(groups.flat().slice(runs.length).map(unrunBecause(error)))
    throw error
  }
  report()
  const failed = runs.filter(({ state }) => state !== 'passed')
  print(`${runs.length - failed.length} of ${files.length} scenarios passed`)
  return failed.length === 0 && runs.length === files.length ? 0 : 1
}

/** The cases that an error has prevented: it belongs to the first, and the others were not tried. */
const unrunBecause =
  (error: unknown) =>
  ({ scenario: { name } }: File, index: number): JunitCase => ({
    name,
    ms: 0,
    ...(index === 0 ? { failure: problemOf(error) } : { skipped: 'an earlier scenario could not be run' }),
  })

function read(argv: readonly string[]) {
  try {
    const text = { type: 'string' } as const
    const { positionals, values } = parseArgs({
      args: [...argv],
      allowPositionals: true,
      options: {
        report: text,
        attach: text,
        hub: text,
        set: { type: 'string', multiple: true },
        help: { type: 'boolean' },
      },
    })
    const [verb, ...paths] = positionals
    if (values.attach !== undefined && !URL.canParse(values.attach))
      throw new UsageError(`--attach: ${values.attach} is no address; the demo's is http://127.0.0.1:8082`)
    if (values.hub !== undefined && !/^\d+$/.test(values.hub)) throw new UsageError('--hub: must be a number')
    return { verb, paths, values }
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new UsageError(`${(error as Error).message}\n\n${usage}`)
  }
}

function settingOf(word: string): [string, string | number] {
  const at = word.indexOf('=')
  if (at < 1) throw new UsageError(`--set ${word}: must be name=value`)
  const text = word.slice(at + 1)
  return [word.slice(0, at), text !== '' && Number.isFinite(Number(text)) ? Number(text) : text]
}

/** Throws if no file has a parameter of this name. */
function requireKnown(given: Parameters, files: readonly File[]): void {
  const known = [...new Set(files.flatMap(({ scenario }) => Object.keys(scenario.parameters)))]
  for (const name of Object.keys(given))
    if (!known.includes(name)) {
      const names = known.length > 0 ? known.join(', ') : 'none'
      throw new UsageError(`--set ${name}: no file has this parameter; their parameters: ${names}`)
    }
}

/** A parameter that this file does not have may belong to another file. */
function readFile(path: string, given: Parameters): File {
  try {
    const text = readFileSync(path, 'utf8')
    const { parameters } = readScenario(text)
    return { path, text, scenario: readScenario(text, ownOf(given, parameters)) }
  } catch (error) {
    const problems = error instanceof ScenarioError ? error.problems : [(error as Error).message]
    throw new UsageError(problems.map((problem) => `${path}: ${problem}`).join('\n'))
  }
}

const ownOf = (given: Parameters, known: Parameters): Parameters =>
  Object.fromEntries(Object.entries(given).filter(([name]) => Object.hasOwn(known, name)))

const caseOf = ({ name, state, durationMs = 0, problem, steps }: Run): JunitCase => ({
  name,
  ms: durationMs,
  ...(state !== 'passed' && { failure: problem ?? state }),
  output: steps
    .filter((step) => step.state !== 'waiting')
    .map(stepLine)
    .join('\n'),
})

/** Scenarios with the same settings share a demo. */
function bySettings(files: readonly File[]): File[][] {
  const groups = new Map<string, File[]>()
  for (const file of files) {
    const key = JSON.stringify(
      Object.entries(file.scenario.settings).sort(([one], [other]) => one.localeCompare(other)),
    )
    groups.set(key, [...(groups.get(key) ?? []), file])
  }
  return [...groups.values()]
}

/** The speed of the mechanisms in a demo that is started for scenarios, relative to real ones. */
const SPEED = 20

async function ownDemo(
  settings: Scenario['settings'],
  runtime: Runtime,
  stopping: AbortSignal,
): Promise<{ simulator: Simulator; end: () => Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), 'larder-scenario-'))
  const ports = Object.fromEntries(
    await Promise.all(demoPorts.map(async (name) => [name, String(await freePort())])),
  )
  const read = readDemoSettings(['--gpio', 'socket'], {
    ...process.env,
    ...ports,
    DATA_DIR: join(folder, 'data'),
  })
  if (!read.ok) throw new UsageError(read.problems.join('\n'))
  let demo: Demo | undefined
  const end = async (): Promise<void> => {
    await demo?.stop()
    rmSync(folder, { recursive: true, force: true })
  }
  stopping.addEventListener('abort', () => void demo?.stop())
  const environment = { SIMULATOR_SPEED: String(SPEED), ...stringsOf(settings) }
  const progress = progressOn(process.stderr, runtime.clock)
  demo = new Demo({ settings: read.settings, runtime, print: () => {}, progress, environment })
  try {
    await demo.ready
  } catch (error) {
    await end()
    throw new UsageError(`the demo does not start: ${(error as Error).message}`)
  }
  return { simulator: simulatorAt(`http://127.0.0.1:${read.settings.SIMULATOR_PORT}`), end }
}

const stringsOf = (settings: Scenario['settings']): Record<string, string> =>
  Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, String(value)]))

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}

async function runFile(
  { path, text, scenario }: File,
  options: {
    simulator: Simulator
    hubId: number
    parameters: Parameters
    runtime: Runtime
    stopping: AbortSignal
    print: (text: string) => void
  },
): Promise<Run> {
  const { simulator, hubId, runtime, stopping, print } = options
  print(`${scenario.name} (${path})`)
  const run = await runAndWatch(
    { simulator, clock: runtime.clock, isStopped: () => stopping.aborted },
    { hub_id: hubId, text, parameters: ownOf(options.parameters, scenario.parameters) },
    (step) => print(stepLine(step)),
  )
  print(
    `${run.state} after ${((run.durationMs ?? 0) / 1000).toFixed(1)} s${run.problem === undefined ? '' : `: ${run.problem}`}\n`,
  )
  return run
}
