import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { nameOf } from './bundle.ts'
import { NODE } from './target.ts'

interface Locked {
  /** Name in the registry, if the folder has another one. */
  name?: string
  version: string
  license?: string
  integrity?: string
}

/**
 * The parts of a package, as CycloneDX 1.6: Node, and the npm packages in `folders` (below `node_modules`), with
 * version, licence and checksum from the lock file.
 */
export function sbomOf(
  root: string,
  { name, version }: { name: string; version: string },
  folders: readonly string[],
): object {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Locked>
  }
  const library = (folder: string): object => {
    const { name: registered = nameOf(folder), version, license, integrity } = packages[folder]!
    const purl = `pkg:npm/${registered.replace('@', '%40')}@${version}`
    const content = integrity && Buffer.from(integrity.slice('sha512-'.length), 'base64').toString('hex')
    return {
      type: 'library',
      'bom-ref': `${purl}#${folder}`,
      name: registered,
      version,
      purl,
      ...(license && { licenses: [{ expression: license }] }),
      ...(content && { hashes: [{ alg: 'SHA-512', content }] }),
    }
  }
  const node = { type: 'platform', 'bom-ref': 'node', name: 'node', version: NODE.version }
  const cpe = `cpe:2.3:a:nodejs:node.js:${NODE.version}:*:*:*:*:*:*:*`
  return {
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: { component: { type: 'application', 'bom-ref': name, name, version } },
    components: [{ ...node, cpe }, ...[...new Set(folders)].sort().map(library)],
  }
}
