import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onPath } from './services.ts'

/** A Mosquitto of a test's own, with the access rules of protocol/mqtt/SPEC.md §2. */
export interface Mosquitto {
  port: number
  /** For user and password. */
  url(user: string): string
  /** As SIGKILL does. */
  kill(): Promise<void>
  /** Starts it again, empty, on the same port. */
  start(): Promise<void>
  /** Kills it and deletes its files. */
  remove(): Promise<void>
}

/** Every user's password. */
export const MOSQUITTO_PASSWORD = 'a secret'

export async function startMosquitto(users: readonly string[]): Promise<Mosquitto> {
  const folder = mkdtempSync(join(tmpdir(), 'larder-mosquitto-'))
  // Started by root it becomes another user.
  chmodSync(folder, 0o755)
  const port = await freePort()
  const passwords = join(folder, 'passwords')
  writeFileSync(passwords, users.map((user) => `${user}:${MOSQUITTO_PASSWORD}\n`).join(''))
  execFileSync(onPath('mosquitto_passwd')!, ['-U', passwords])
  writeFileSync(join(folder, 'acl'), accessRules())
  for (const name of ['passwords', 'acl']) chmodSync(join(folder, name), 0o644)
  writeFileSync(
    join(folder, 'mosquitto.conf'),
    [
      `listener ${port} 127.0.0.1`,
      'allow_anonymous false',
      `password_file ${passwords}`,
      `acl_file ${join(folder, 'acl')}`,
      'set_tcp_nodelay true',
      'max_packet_size 1048576',
      'persistence false',
      'log_dest stderr',
      '',
    ].join('\n'),
  )
  let child: ChildProcess | undefined

  async function start(): Promise<void> {
    child = spawn(onPath('mosquitto')!, ['-c', join(folder, 'mosquitto.conf')], { stdio: 'ignore' })
    await listening(port)
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
  return {
    port,
    url: (user) => `mqtt://${user}:${encodeURIComponent(MOSQUITTO_PASSWORD)}@127.0.0.1:${port}`,
    kill,
    start,
    async remove() {
      await kill()
      rmSync(folder, { recursive: true })
    },
  }
}

/** The block `# acl` of the specification: what operators copy is what is tested. */
function accessRules(): string {
  const spec = readFileSync(join(import.meta.dirname, '../../protocol/mqtt/SPEC.md'), 'utf8')
  const rules = /^# acl\n([\s\S]*?)^```$/m.exec(spec)?.[1]
  if (rules === undefined) throw new Error('the specification has no access rules')
  return rules
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
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
