import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Gpio, type Direction, type Edge, type Options } from 'onoff'

/**
 * Runs in the mount namespace and uses sysfs and onoff as the lines on its standard input ask. It answers
 * each line with `{value}` or `{error}` (the error's code), and prints `{edge, level}` for each edge from
 * onoff.
 */
export type AgentRequest =
  | { do: 'list'; path: string }
  | { do: 'read'; path: string }
  | { do: 'write'; path: string; text: string }
  | { do: 'open'; pin: number; direction: Direction; edge?: Edge; options?: Options }
  | { do: 'get' | 'watch' | 'unexport'; pin: number }
  | { do: 'set'; pin: number; level: 0 | 1 }
  | { do: 'stall'; ms: number }

const root = '/sys/class/gpio'
const gpios = new Map<number, Gpio>()
const say = (message: object) => void process.stdout.write(`${JSON.stringify(message)}\n`)

function perform(request: AgentRequest): unknown {
  switch (request.do) {
    case 'list':
      return readdirSync(`${root}/${request.path}`).toSorted()
    case 'read':
      return readFileSync(`${root}/${request.path}`, 'utf8')
    case 'write':
      writeFileSync(`${root}/${request.path}`, request.text)
      return null
    case 'open':
      gpios.set(
        request.pin,
        new Gpio(request.pin, request.direction, request.edge ?? 'none', request.options ?? {}),
      )
      return null
    case 'get':
      return gpios.get(request.pin)!.readSync()
    case 'set':
      gpios.get(request.pin)!.writeSync(request.level)
      return null
    case 'watch':
      gpios.get(request.pin)!.watch((_error, level) => say({ edge: request.pin, level }))
      return null
    case 'unexport':
      gpios.get(request.pin)!.unexport()
      return null
    case 'stall':
      say({ stalling: true })
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, request.ms)
      return null
  }
}

createInterface({ input: process.stdin }).on('line', (line) => {
  try {
    say({ value: perform(JSON.parse(line) as AgentRequest) })
  } catch (error) {
    say({ error: (error as NodeJS.ErrnoException).code ?? String(error) })
  }
})
process.on('SIGTERM', () => process.exit(7))
say({ value: 'ready' })
