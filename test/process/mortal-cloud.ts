import { spawn, type ChildProcess } from 'node:child_process'
import { sleep, type Clock } from '../../protocol/model/runtime.ts'
import { commandOf, packageRoot } from '../support/programs.ts'

export interface MortalCloudOptions {
  folder: string
  databaseUrl: string
  port: number
  mqttPort: number
  clock: Clock
}

/** The real cloud program, which dies at a chosen checkpoint and is restarted. */
export interface MortalCloud {
  /** Resolves when it is ready, or has died at its checkpoint before. */
  start(environment?: Readonly<Record<string, string>>): Promise<void>
  /** The checkpoint at which it died since its last start; undefined while it lives. */
  diedAt(): string | undefined
  stop(): Promise<void>
}

const READY_MS = 60_000
const POLL_MS = 20

export function mortalCloud({ folder, databaseUrl, port, mqttPort, clock }: MortalCloudOptions): MortalCloud {
  let child: ChildProcess | undefined
  let output = ''
  let isGone = true

  async function start(environment: Readonly<Record<string, string>> = {}): Promise<void> {
    const root = packageRoot()
    const [node, ...args] = commandOf('cloud/main', ['test/process/mortal/preload'])
    output = ''
    isGone = false
    child = spawn(node, args, {
      cwd: root,
      env: {
        PATH: process.env['PATH'],
        DATA_DIR: folder,
        DATABASE_URL: databaseUrl,
        PORT: String(port),
        MQTT_PORT: String(mqttPort),
        LOG_LEVEL: 'info',
        // A hub that was online once and is disconnected: it takes orders, and commands to it fail at once.
        ONLINE_WITHIN_MS: '3600000',
        WORK_POLL_MS: '100',
        // The next process soon takes over the work of a killed one.
        WORK_LEASE_MS: '1000',
        PAYMENT_RECHECK_MS: '200',
        ...environment,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [child.stdout, child.stderr])
      stream!.on('data', (chunk: Buffer) => (output += chunk.toString()))
    child.once('exit', () => (isGone = true))
    for (let waited = 0; !/cloud is ready|^died at /m.test(output); waited += POLL_MS) {
      if (isGone || waited > READY_MS) throw new Error(`the cloud does not start:\n${output}`)
      await sleep(clock, POLL_MS)
    }
  }

  return {
    start,
    diedAt() {
      if (!isGone) return undefined
      const point = /^died at (\S+)$/m.exec(output)?.[1]
      if (point === undefined) throw new Error(`the cloud ended by itself:\n${output.slice(-2000)}`)
      return point
    },
    async stop() {
      if (isGone) return
      const exited = new Promise((done) => child!.once('exit', done))
      child!.kill('SIGKILL')
      await exited
    },
  }
}
