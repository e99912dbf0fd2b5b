import { fork, type ChildProcess } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { commandOf } from './programs.ts'

const [, main = ''] = commandOf('edge/main')

export interface EdgeProgram {
  child: ChildProcess
  /** Address of the hub's service. Rejects if the program ends first. */
  url: Promise<string>
  exited: Promise<number | null>
  output: () => string
}

/**
 * Starts the hub's program as the demo does, for a hub whose controllers do not answer. Its files are in
 * `folder`.
 */
export function startEdge(folder: string, environment: Readonly<Record<string, string>> = {}): EdgeProgram {
  const HARDWARE = join(folder, 'hardware.json')
  const devices = [{ kind: 'bin', number: 1 }]
  const controllers = [{ id: 'bins', port: join(folder, 'no-port'), devices }]
  writeFileSync(HARDWARE, JSON.stringify({ hubId: 1, controllers, gpio: { chipLabel: 'none', lines: [] } }))
  const child = fork(main, [], {
    execArgv: [],
    env: {
      PATH: process.env['PATH'],
      HARDWARE,
      MQTT_PASSWORD: 'secret',
      // No broker listens there: the hub works without the internet.
      MQTT_URL: 'mqtt://127.0.0.1:9',
      STORE: join(folder, 'data', 'hub.sqlite'),
      PORT: '0',
      GPIO: 'none',
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  let output = ''
  const exited = new Promise<number | null>((resolve) => child.once('exit', resolve))
  const url = new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout!, child.stderr!])
      stream.on('data', (chunk: Buffer) => {
        output += String(chunk)
        const match = /"url":"([^"]+)"/.exec(output)
        if (match) resolve(match[1]!)
      })
    void exited.then((code) => reject(new Error(`ended with ${code}: ${output}`)))
  })
  // A program that is expected to fail has no address.
  url.catch(() => {})
  return { child, url, exited, output: () => output }
}
