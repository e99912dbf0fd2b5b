import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../../protocol/model/log.ts'
import { MAX_IMAGE_BYTES } from '../../protocol/serial/frames.ts'
import { readImageHeader } from '../../protocol/serial/image.ts'

/** The firmware that the hub has for a kind of controllers (serial SPEC §12). */
export interface FirmwareImage {
  kind: string
  build: number
  size: number
  /** SHA-256. */
  sum: string
  /** Undefined if the file has changed or cannot be read. */
  read(): Uint8Array | undefined
}

const MAX_FILES = 32

/**
 * The newest firmware of each kind of controllers, from the files `*.img` of these folders (serial SPEC §12). An absent folder
 * has none. A file that is no image is reported and left out; the controllers verify the signatures.
 */
export function readImages(folders: readonly string[], log: Log): FirmwareImage[] {
  const newest = new Map<string, FirmwareImage>()
  for (const file of folders.flatMap(filesOf).slice(0, MAX_FILES)) {
    const bytes = bytesOf(file)
    const header = bytes && readImageHeader(bytes)
    if (!header) {
      log.warn({ file }, 'this file is not an image of a firmware')
      continue
    }
    const { kind, build } = header
    if (build <= (newest.get(kind)?.build ?? -1)) continue
    const sum = sumOf(bytes)
    newest.set(kind, { kind, build, size: bytes.length, sum, read: () => sameBytes(file, sum) })
  }
  return [...newest.values()]
}

function filesOf(folder: string): string[] {
  try {
    const names = readdirSync(folder).filter((name) => name.endsWith('.img'))
    return names.sort().map((name) => join(folder, name))
  } catch {
    return []
  }
}

function bytesOf(file: string): Buffer | undefined {
  try {
    return statSync(file).size > MAX_IMAGE_BYTES ? undefined : readFileSync(file)
  } catch {
    return undefined
  }
}

function sameBytes(file: string, sum: string): Buffer | undefined {
  const bytes = bytesOf(file)
  return bytes && sumOf(bytes) === sum ? bytes : undefined
}

const sumOf = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
