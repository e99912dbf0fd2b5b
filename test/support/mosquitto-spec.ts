import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from './programs.ts'
import { onPath } from './on-path.ts'

export interface MosquittoSetup {
  /** Folder of its files. */
  folder: string
  hubPort: number
  cloudPort: number
  /** By user; all users except hubs belong to the cloud. */
  passwords: Readonly<Record<string, string>>
  /** Paths of a self-signed certificate and of its key. Without them the connection is unencrypted. */
  certificate?: { certPath: string; keyPath: string }
  /** Port of the listener for hubs with client certificates. It needs `certificate`. */
  certificatePort?: number
}

/**
 * Writes the files of protocol/mqtt/SPEC.md §2 unchanged, except folder, ports and address. Returns the
 * command that runs Mosquitto with them.
 */
export function setUpMosquitto({ folder, passwords, certificate, ...ports }: MosquittoSetup): string[] {
  const write = (name: string, text: string): string => {
    const path = join(folder, name)
    writeFileSync(path, text, { mode: 0o600 })
    return path
  }
  const passwordsOf = (name: string, isOne: (user: string) => boolean): void => {
    const users = Object.entries(passwords).filter(([user]) => isOne(user))
    const path = write(name, users.map(([user, password]) => `${user}:${password}\n`).join(''))
    execFileSync(onPath('mosquitto_passwd')!, ['-U', path], { stdio: 'ignore' })
  }
  const isHub = (user: string): boolean => user.startsWith('hub-')
  passwordsOf('hub-passwords', isHub)
  passwordsOf('cloud-passwords', (user) => !isHub(user))
  for (const name of ['hub-acl', 'cloud-acl']) write(name, specified(name))
  const listeners = ['mosquitto.conf', ...(ports.certificatePort ? ['mosquitto.conf, continued'] : [])]
  if (certificate) {
    const cert = readFileSync(certificate.certPath, 'utf8')
    write('ca.pem', cert)
    write('broker.pem', cert)
    write('broker.key', readFileSync(certificate.keyPath, 'utf8'))
  }
  const configuration = listeners
    .map(specified)
    .join('')
    .replace('listener 8883', `listener ${ports.hubPort} 127.0.0.1`)
    .replace('listener 8884', `listener ${ports.cloudPort} 127.0.0.1`)
    .replace('listener 8885', `listener ${ports.certificatePort} 127.0.0.1`)
    .replaceAll(certificate ? /(?!)/g : /^(cafile|certfile|keyfile) .*\n/gm, '')
    .replaceAll('/etc/larder/', `${folder}/`)
  // Mosquitto started by root changes to another user, who could not read these files.
  const user = process.getuid?.() === 0 ? 'user root\n' : ''
  return [onPath('mosquitto')!, '-c', write('mosquitto.conf', user + configuration)]
}

/** A file as the specification prints it: tests use the text that operators copy. */
function specified(name: string): string {
  const spec = readFileSync(join(packageRoot(), 'protocol/mqtt/SPEC.md'), 'utf8')
  const text = new RegExp(`^\`\`\`\n(# /etc/larder/${name}\n[^]*?)^\`\`\`$`, 'm').exec(spec)?.[1]
  if (text === undefined) throw new Error(`the specification has no ${name}`)
  return text
}

/** The script that keeps Mosquitto's list of revoked certificates up to date, as the page “Message brokers” prints it. */
export function revocationScript({ folder, url }: { folder: string; url: string }): string {
  const page = readFileSync(join(packageRoot(), 'cloud/docs/operating/09-brokers.md'), 'utf8')
  const text = /^```\n(#!\/bin\/sh\n# Keeps Mosquitto's list[^]*?)^```$/m.exec(page)?.[1]
  if (text === undefined) throw new Error('the page has no script')
  return text.replace('/etc/larder', folder).replace('https://larder.example/pki/crl.pem', url)
}
