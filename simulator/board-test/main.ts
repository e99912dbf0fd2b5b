import '../../protocol/require-node.ts'
import '../../protocol/private-files.ts'
import { readFileSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { HardwareDescription } from '../../protocol/model/hardware.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { Bench, type Rule, operatorPower, relayPower } from './bench.ts'
import { Broken, Unasked } from './host.ts'
import { rules, proveRules, type Finding } from './run.ts'
import { connect } from 'node:net'
import { SerialPort } from 'serialport'
import { readImageHeader } from '../../protocol/serial/image.ts'
import { MAX_LINE_BYTES } from '../../protocol/serial/frames.ts'
import { createLineSplitter, type OpenLinePort } from '../../protocol/serial/line-port.ts'
import { isFileProblem, problemOf } from '../../protocol/model/system-error.ts'
import { tcpAddress } from '../mounts/serial-ports.ts'
import { junitReport } from '../junit.ts'

const marks: Record<Finding['state'], string> = { holds: '✓', broken: '✗', 'not asked': '–' }

function findingLine({ rule, state, because, ms }: Finding): string {
  const line = `${marks[state]} ${String(rule.number).padStart(2)}  ${rule.title}  (${(ms / 1000).toFixed(1)} s)`
  return because === undefined
    ? line
    : `${line}\n      ${state === 'broken' ? because : `not asked: ${because}`}`
}

/** The last sentence of the report. */
function summary(findings: readonly Finding[]): string {
  const count = (state: Finding['state']): number => findings.filter((one) => one.state === state).length
  const broken = findings.filter(({ state }) => state === 'broken').map(({ rule }) => rule.number)
  const skipped = count('not asked') > 0 ? `, ${count('not asked')} not asked` : ''
  return broken.length === 0
    ? `${count('holds')} rules hold${skipped}.`
    : `${count('holds')} rules hold${skipped}; broken: ${broken.join(', ')} (protocol/serial/SPEC.md §11).`
}

const asJunit = (findings: readonly Finding[]): string =>
  junitReport(
    'board-test',
    findings.map(({ rule, state, because, ms }) => ({
      name: `${rule.number} ${rule.title}`,
      ms,
      failure: state === 'broken' ? because : undefined,
      skipped: state === 'not asked' ? because : undefined,
    })),
  )

/**
 * The line to a board: a serial port, a pseudo-terminal, or `tcp:HOST:PORT`. The part of a line above the limit is
 * dropped.
 */
const openBoardLine: OpenLinePort = ({ path, baudRate }, handlers) => {
  let hasEnded = false
  const split = createLineSplitter(MAX_LINE_BYTES + 2, (line) => {
    if (!hasEnded) handlers.onLine(line)
  })
  const end = (reason: string): void => {
    if (hasEnded) return
    hasEnded = true
    handlers.onClose(reason)
  }
  const address = tcpAddress(path)
  if (address) {
    const socket = connect(address)
    socket.setNoDelay(true)
    socket.setEncoding('latin1')
    socket.on('connect', () => handlers.onOpen())
    socket.on('data', (chunk: string) => split(chunk))
    socket.on('error', (error) => end(error.message))
    socket.on('close', () => end('the other end closed'))
    return {
      write: (line) => !hasEnded && socket.write(`${line}\n`, 'latin1'),
      close() {
        hasEnded = true
        socket.destroy()
      },
    }
  }
  const port = new SerialPort({ path, baudRate, hupcl: false, lock: true, autoOpen: false })
  port.on('error', (error) => end(error.message))
  port.on('close', (error: Error | null) => end(error?.message ?? 'the port closed'))
  port.on('data', (chunk: Buffer) => split(chunk.toString('latin1')))
  port.open((error) => {
    if (error) end(error.message)
    else if (hasEnded) port.close()
    else handlers.onOpen()
  })
  return {
    write: (line) => !hasEnded && port.isOpen && (port.write(`${line}\n`, 'latin1'), true),
    close() {
      hasEnded = true
      if (port.isOpen) port.close()
    },
  }
}

const usage = `npm run board-test -- --port PATH --hardware FILE [options]

Plays the host against a controller and proves each rule of protocol/serial/SPEC.md §11 on it.
Its doors, lifts and rows move: keep hands away. Its memory of operations is emptied.

  --port PATH          the serial port (/dev/serial/by-id/…, a pseudo-terminal), or tcp:HOST:PORT
  --hardware FILE      the hub's hardware.json, with the controller's devices
  --controller ID      which of its controllers; default: the one whose port is PATH, or the only one
  --relay COMMAND      a command that switches the board's power; it is called with off and on (in place of {}, or at its end)
  --operator           you switch the power: you are asked to pull the plug
                       Without either the rules of power failures are not asked.
  --firmware FILE      an image of a newer firmware for the board (protocol/serial/SPEC.md §12); the board runs it afterwards
                       Without it the rules of updates are not asked.
  --rules N,N-N        these rules alone
  --wipe               the controller belongs to a hub already: empty its memory all the same
  --junit FILE         also writes the report as JUnit's XML
  --list               names the rules and ends
  --help               this text

Exit status: 0 every rule that was asked holds, 1 a rule is broken, 2 the test could not be made.`

/** A wrong command line. */
class UsageError extends Error {}

await main()

async function main(): Promise<void> {
  try {
    process.exitCode = await run()
  } catch (error) {
    if (![UsageError, Unasked, Broken].some((kind) => error instanceof kind) && !isFileProblem(error))
      throw error
    process.stderr.write(`${problemOf(error)}\n`)
    process.exitCode = 2
  }
}

function readArguments() {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean' } as const
  const options = {
    port: text,
    hardware: text,
    controller: text,
    relay: text,
    firmware: text,
    rules: text,
    junit: text,
    operator: flag,
    wipe: flag,
    list: flag,
    help: flag,
  }
  try {
    return parseArgs({ options }).values
  } catch (error) {
    throw new UsageError(`${(error as Error).message}\n\n${usage}`)
  }
}

async function run(): Promise<number> {
  const given = readArguments()
  if (given.help || given.list) {
    print(
      given.help
        ? usage
        : rules.map(({ number, title }) => `${String(number).padStart(2)}  ${title}`).join('\n'),
    )
    return 0
  }
  const { port, hardware, controller } = given
  if (port === undefined || hardware === undefined)
    throw new UsageError(`--port and --hardware are needed\n\n${usage}`)
  if (given.relay !== undefined && given.operator) throw new UsageError('--relay and --operator: one of them')
  const wanted = chosen(given.rules)
  const { hubId, description } = describe(hardware, port, controller)
  const power =
    given.relay === undefined
      ? given.operator && operatorPower(process.stdin, process.stdout)
      : relayPower(given.relay)
  const { baudRate } = description
  const bench = new Bench({
    openPort: openBoardLine,
    path: port,
    baudRate,
    runtime: systemRuntime(),
    description,
    hubId,
    power: power || undefined,
    image: given.firmware === undefined ? undefined : imageAt(given.firmware),
  })
  try {
    return await prove(bench, { port, wanted, wipe: given.wipe === true, junit: given.junit })
  } finally {
    // An open port would keep the program alive.
    bench.host.close()
    bench.power?.close()
  }
}

async function prove(
  bench: Bench,
  asked: { port: string; wanted: readonly Rule[]; wipe: boolean; junit: string | undefined },
): Promise<number> {
  await bench.host.open()
  const { fw, hub, ctl } = await bench.host.greet()
  if (hub !== undefined && !asked.wipe)
    throw new UsageError(
      `This controller belongs to hub ${hub} (${ctl}). The test empties its memory of operations: say --wipe.`,
    )
  print(
    `Controller ${bench.description.id} at ${asked.port}, firmware ${fw}: ${asked.wanted.length} rules.\n`,
  )
  const findings = await proveRules(bench, asked.wanted, (finding) => print(findingLine(finding)))
  print(`\n${summary(findings)}`)
  if (asked.junit !== undefined) writeFileSync(asked.junit, asJunit(findings))
  return findings.some(({ state }) => state === 'broken') ? 1 : 0
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

function imageAt(file: string): Uint8Array {
  try {
    const bytes = readFileSync(file)
    if (readImageHeader(bytes)) return bytes
  } catch (error) {
    throw new UsageError(`--firmware: ${file}: ${(error as Error).message}`)
  }
  throw new UsageError(`--firmware: ${file} is not an image of a firmware (SPEC §12)`)
}

/** `3,7-9` */
function chosen(text: string | undefined) {
  if (text === undefined) return rules
  const numbers = new Set<number>()
  for (const part of text.split(',')) {
    const [, first, last = first] = /^(\d+)(?:-(\d+))?$/.exec(part.trim()) ?? []
    if (first === undefined || Number(first) < 1 || Number(last) > rules.length)
      throw new UsageError(`--rules: ${part}: rules are 1 to ${rules.length}, as 3,7-9`)
    for (let number = Number(first); number <= Number(last); number++) numbers.add(number)
  }
  return rules.filter(({ number }) => numbers.has(number))
}

function describe(file: string, port: string, wanted: string | undefined) {
  let json: unknown
  try {
    json = JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new UsageError(`--hardware: ${file}: ${(error as Error).message}`)
  }
  const parsed = HardwareDescription.safeParse(json)
  if (!parsed.success) throw new UsageError(`--hardware: ${file}: ${z.prettifyError(parsed.error)}`)
  const { hubId, controllers } = parsed.data
  const description =
    wanted === undefined
      ? (controllers.find((one) => one.port === port) ??
        (controllers.length === 1 ? controllers[0] : undefined))
      : controllers.find(({ id }) => id === wanted)
  if (description) return { hubId, description }
  const known = controllers.map(({ id }) => id).join(', ')
  throw new UsageError(
    `--controller: ${wanted === undefined ? 'say which' : `there is no ${wanted}`}: ${known}`,
  )
}
