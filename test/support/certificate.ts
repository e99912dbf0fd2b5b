import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onPath } from './on-path.ts'

/** A certificate of this machine's loopback addresses that signs itself, and its key: paths, and what they hold. */
export interface TestCertificate {
  certPath: string
  keyPath: string
  cert: string
  key: string
  remove(): void
}

export function makeCertificate(): TestCertificate {
  const folder = mkdtempSync(join(tmpdir(), 'larder-certificate-'))
  const [certPath, keyPath] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const about =
    'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1'
  const files = ['-keyout', keyPath, '-out', certPath]
  execFileSync(onPath('openssl')!, [...about.split(' '), ...files], { stdio: 'ignore' })
  const [cert, key] = [certPath, keyPath].map((path) => readFileSync(path, 'utf8')) as [string, string]
  return { certPath, keyPath, cert, key, remove: () => rmSync(folder, { recursive: true }) }
}
