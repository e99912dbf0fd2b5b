import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { makeKeys } from '../../cloud/operations/releases/metadata.ts'
import { addRelease } from '../../cloud/operations/releases/releases.ts'
import type { CloudContext } from '../../cloud/platform/context.ts'
import type { Media } from '../../cloud/platform/media/media.ts'
import { tarOf } from '../../protocol/model/tar.ts'

/** The processor of this machine, as packages name it. */
export const processor = process.arch === 'arm64' ? 'arm64' : 'amd64'

/** Writes the tarball of a hub's package with these files, and returns its path. */
export function tarballOf(version: string, files: Readonly<Record<string, string>> = {}): string {
  const about = JSON.stringify({ name: 'larder-hub', version, processor })
  const inside = Object.entries({ 'package.json': about, ...files }).map(([name, text]) => [
    `larder/hub/${name}`,
    text,
  ])
  const path = join(mkdtempSync(join(tmpdir(), 'larder-release-')), 'hub.tar.gz')
  writeFileSync(path, gzipSync(tarOf(Object.fromEntries(inside) as Record<string, string>, 0)))
  return path
}

/** Adds a release with its own keys. */
export function addTestRelease(
  context: CloudContext,
  media: Media,
  version: string,
  keys = makeKeys(context.runtime.clock.now()),
) {
  const signed = { root: keys['root.json'], signing: keys['signing.key'] }
  return addRelease(context, media, { tarball: tarballOf(version), ...signed }, () => Promise.resolve())
}
