import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const SUMS = 'SHA256SUMS'

/** Writes the checksums of all packages in a folder, for `sha256sum --check`. Returns the path. */
export function writeSums(folder: string): string {
  const files = readdirSync(folder).filter((file) => /^larder-.*\.(deb|tar\.gz|cdx\.json)$/.test(file))
  const line = (file: string): string =>
    `${createHash('sha256')
      .update(readFileSync(join(folder, file)))
      .digest('hex')}  ${file}\n`
  const path = join(folder, SUMS)
  writeFileSync(path, files.sort().map(line).join(''))
  return path
}

/**
 * Signs a file with a private key of OpenSSH: `ssh-keygen -Y verify -n larder` checks the signature, which goes to
 * FILE.sig.
 */
export function sign(file: string, key: string): void {
  const asked = ['-q', '-Y', 'sign', '-f', key, '-n', 'larder']
  const signature = execFileSync('ssh-keygen', asked, {
    input: readFileSync(file),
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  writeFileSync(`${file}.sig`, signature)
}
