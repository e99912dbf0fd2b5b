import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePorts } from './ports.ts'
import { setUpMosquitto, type MosquittoSetup } from './mosquitto-spec.ts'

/** A separate Mosquitto of a test, with the configuration of protocol/mqtt/SPEC.md §2. */
export interface Mosquitto {
  hubPort: number
  cloudPort: number
  /** URL of the cloud's listener, with user and password. */
  cloudUrl: string
  /** Kills it like SIGKILL. */
  kill(): Promise<void>
  /** Restarts it, empty, on the same ports. */
  start(): Promise<void>
  /** Replaces one of its password files, and makes it read the file. */
  replacePasswords(name: 'hub-passwords' | 'cloud-passwords', text: string): void
  /** Kills it and deletes its files. */
  remove(): Promise<void>
}

/** The password of every user. */
export const MOSQUITTO_PASSWORD = 'a secret'
const CLOUD_USER = 'larder-cloud'

export async function startMosquitto(
  hubs: readonly string[],
  certificate?: MosquittoSetup['certificate'],
): Promise<Mosquitto> {
  const folder = mkdtempSync(join(tmpdir(), 'larder-mosquitto-'))
  const [hubPort, cloudPort] = (await freePorts(2)) as [number, number]
  const passwords = Object.fromEntries([...hubs, CLOUD_USER].map((user) => [user, MOSQUITTO_PASSWORD]))
  const setup = { folder, hubPort, cloudPort, passwords, ...(certificate && { certificate }) }
  const [program, ...args] = setUpMosquitto(setup)
  let child: ChildProcess | undefined

  async function start(): Promise<void> {
    child = spawn(program!, args, { stdio: 'ignore' })
    for (const port of [hubPort, cloudPort]) await listening(port)
  }
  async function kill(): Promise<void> {
    const dying = child
    child = undefined
    if (!dying) return
    const dead = new Promise((resolve) => dying.once('exit', resolve))
    dying.kill('SIGKILL')
    await dead
  }
  await start()
  const scheme = certificate ? 'mqtts' : 'mqtt'
  return {
    hubPort,
    cloudPort,
    cloudUrl: `${scheme}://${CLOUD_USER}:${encodeURIComponent(MOSQUITTO_PASSWORD)}@127.0.0.1:${cloudPort}`,
    kill,
    start,
    replacePasswords(name, text) {
      writeFileSync(join(folder, name), text)
      child?.kill('SIGHUP')
    },
    async remove() {
      await kill()
      rmSync(folder, { recursive: true })
    },
  }
}

async function listening(port: number): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    const isUp = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1')
      socket.once('connect', () => {
        socket.destroy()
        resolve(true)
      })
      socket.once('error', () => setTimeout(() => resolve(false), 20))
    })
    if (isUp) return
    if (attempt === 500) throw new Error('mosquitto does not listen')
  }
}
