import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestFunction } from 'vitest'
import { NODE } from '../../edge/packaging/target.ts'
import { onPath } from './on-path.ts'

const withoutPostgres = (): string | undefined =>
  process.env['TEST_POSTGRES_URL'] ? undefined : 'TEST_POSTGRES_URL is not set'

/** Requirements of tests beyond Node. Each returns the reason why it is missing here, or undefined. */
const services = {
  /** A small disk that a test can fill. */
  tmpfs: () => {
    const folder = mkdtempSync(join(tmpdir(), 'larder-tmpfs-'))
    const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'larder', folder], {
      encoding: 'utf8',
    })
    if (mounted.status === 0) spawnSync('umount', [folder])
    rmdirSync(folder)
    return mounted.status === 0 ? undefined : `no tmpfs can be mounted: ${mounted.stderr?.trim() ?? ''}`
  },
  /** A separate server, made by `.ci/run`, on which databases may be created. */
  postgres: withoutPostgres,
  /** PgBouncer in front of the server of `postgres`. */
  pgbouncer: () => (onPath('pgbouncer') ? withoutPostgres() : 'pgbouncer is not installed'),
  mosquitto: () => (onPath('mosquitto') ? undefined : 'mosquitto is not installed'),
  /** Mosquitto with client certificates, and the programs of the script that keeps its list of revoked ones. */
  mosquittoCertificates: () => {
    const absent = ['mosquitto', 'mosquitto_passwd', 'openssl', 'curl'].filter((program) => !onPath(program))
    return absent.length > 0 ? `${absent.join(', ')} not installed` : undefined
  },
  /** The programs that the operating pages call. */
  operating: () => {
    const absent = ['sqlite3', 'curl', 'openssl', 'mosquitto_passwd', 'tar', 'sha256sum'].filter(
      (program) => !onPath(program),
    )
    return absent.length > 0 ? `${absent.join(', ')} not installed` : undefined
  },
  pgDump: () => {
    const absent = ['pg_dump', 'pg_restore', 'psql'].filter((program) => !onPath(program))
    return absent.length > 0 ? `${absent.join(', ')} not installed` : withoutPostgres()
  },
  /** For a board with a wrong clock: TLS reads it, too. */
  faketime: () => (onPath('faketime') ? undefined : 'faketime is not installed'),
  /** For the example firmware of a controller. */
  python3: () => (onPath('python3') ? undefined : 'python3 is not installed'),
  openssl: () => (onPath('openssl') ? undefined : 'openssl is not installed'),
  nginx: () => (onPath('nginx') && onPath('openssl') ? undefined : 'nginx or openssl is not installed'),
  haproxy: () => (onPath('haproxy') && onPath('openssl') ? undefined : 'haproxy or openssl is not installed'),
  sshd: () => (onPath('sshd') ? undefined : 'sshd is not installed'),
  /** OpenSSH's own clients. */
  ssh: () => {
    const absent = ['ssh', 'scp', 'sftp', 'ssh-keygen', 'ssh-keyscan'].filter((program) => !onPath(program))
    return absent.length > 0 ? `${absent.join(', ')} not installed` : undefined
  },
  systemd: () =>
    onPath('systemd-socket-activate') && onPath('perl') ? undefined : 'systemd or perl is not installed',
  packages: () => {
    const tools = ['dpkg-deb', 'systemd-analyze', 'g++', 'ssh-keygen', 'perl']
    const absent = tools.filter((program) => !onPath(program))
    if (absent.length > 0) return `${absent.join(', ')} not installed`
    const node = `node-linux-${process.arch}@${NODE.version}`
    const { status } = spawnSync('npm', ['pack', node, '--dry-run', '--prefer-offline'], { stdio: 'ignore' })
    return status === 0 ? undefined : `npm cannot get ${node}`
  },
  chromium: () => (onPath('chromium') ? undefined : 'chromium is not installed'),
} satisfies Record<string, () => string | undefined>
export type Service = keyof typeof services

const reasons = new Map<Service, string | undefined>()

/** The reason why `name` is missing on this machine; `undefined` if it exists. Checked once. */
export function missing(name: Service): string | undefined {
  if (!reasons.has(name)) reasons.set(name, services[name]())
  return reasons.get(name)
}

/**
 * A test that needs a service: `service('nginx')('edges arrive', async () => …)`. If the service is missing,
 * the test is skipped and named with the reason; with `REQUIRE_SERVICES=1` it fails.
 */
export const service = (name: Service): ServiceTest => needs(name, () => missing(name))

type ServiceTest = (title: string, run: TestFunction, timeoutMs?: number) => void

/** Like `service`, with its own check: `reason` returns why the machine lacks `name`. */
export function needs(name: string, reason: () => string | undefined): ServiceTest {
  return (title, run, timeoutMs) => {
    const why = reason()
    if (why === undefined) {
      test(title, run, timeoutMs)
      return
    }
    test(`${title} [needs ${name}: ${why}]`, (context) => {
      if (process.env['REQUIRE_SERVICES'] === '1') throw new Error(`REQUIRE_SERVICES=1: ${why}`)
      context.skip(why)
    })
  }
}
