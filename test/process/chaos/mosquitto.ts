import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onPath } from '../../support/services.ts'
import { packageRoot } from './package-root.ts'

/** Writes what an operator would by SPEC §2, but for TLS, and returns the command that runs it. */
export function setUpMosquitto(options: {
  folder: string
  port: number
  /** By user. */
  passwords: Readonly<Record<string, string>>
}): string[] {
  const { folder, port, passwords } = options
  const write = (name: string, text: string): string => {
    const path = join(folder, name)
    writeFileSync(path, text, { mode: 0o600 })
    return path
  }
  const secrets = write(
    'mosquitto.passwords',
    Object.entries(passwords)
      .map(([user, password]) => `${user}:${password}\n`)
      .join(''),
  )
  execFileSync(onPath('mosquitto_passwd')!, ['-U', secrets])
  const config = write(
    'mosquitto.conf',
    [
      `listener ${port} 127.0.0.1`,
      'allow_anonymous false',
      `password_file ${secrets}`,
      `acl_file ${write('mosquitto.acl', accessRules())}`,
      'set_tcp_nodelay true',
      'max_packet_size 1048576',
      'max_queued_messages 1000',
      'persistence false',
      // It would become another user, who could not read these files.
      ...(process.getuid?.() === 0 ? ['user root'] : []),
      '',
    ].join('\n'),
  )
  return [onPath('mosquitto')!, '-c', config]
}

/** The block `# acl` of the specification: what operators copy is what is tested. */
function accessRules(): string {
  const spec = readFileSync(join(packageRoot(), 'protocol/mqtt/SPEC.md'), 'utf8')
  const rules = /^# acl\n([\s\S]*?)^```$/m.exec(spec)?.[1]
  if (rules === undefined) throw new Error('the specification has no access rules')
  return rules
}
