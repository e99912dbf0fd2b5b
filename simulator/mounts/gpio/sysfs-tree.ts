import { Errno, type NodeAttributes } from './fuse-messages.ts'
import type { FileTree } from './fuse-server.ts'
import { registers, type Pins } from './pins.ts'

const ROOT = 1
const CHIP = 8
/** The node of pin n's folder is `PINS + n * 8`; its files follow. */
const PINS = 64

interface Attribute {
  name: string
  permissions: number
  read?: (pin: number) => string | Errno
  write?: (pin: number, text: string) => Errno | undefined
}

/** The node that changes with the pin's level; only this node can be polled. */
export const valueNode = (pin: number): number => PINS + pin * 8 + 1

/**
 * `/sys/class/gpio` over `pins` (SPEC §2). Node numbers are computed from their meaning, so that none must be stored.
 */
export function createSysfsTree(pins: Pins): FileTree {
  const { base, label, count } = pins.chip
  const pinNumber = (text: string): number => (/^\d{1,9}$/.test(text) ? Number(text) : -1)
  const rootFiles: Attribute[] = [
    { name: 'export', permissions: 0o200, write: (_, text) => pins.export(pinNumber(text)) },
    { name: 'unexport', permissions: 0o200, write: (_, text) => pins.unexport(pinNumber(text)) },
  ]
  const chipFiles: Attribute[] = [
    { name: 'base', permissions: 0o444, read: () => String(base) },
    { name: 'label', permissions: 0o444, read: () => label },
    { name: 'ngpio', permissions: 0o444, read: () => String(count) },
  ]
  const pinFiles = registers.map((name): Attribute => ({
    name,
    permissions: 0o644,
    read: (pin) => pins.read(pin, name),
    write: (pin, text) => pins.write(pin, name, text),
  }))

  /** The folder of a node, or the node itself if it is a folder, with its files; `undefined` for an unexported pin. */
  function folderOf(node: number): { node: number; pin: number; files: Attribute[] } | undefined {
    if (node < CHIP) return { node: ROOT, pin: -1, files: rootFiles }
    if (node < PINS) return { node: CHIP, pin: -1, files: chipFiles }
    const pin = Math.floor((node - PINS) / 8)
    return pins.isExported(pin) ? { node: PINS + pin * 8, pin, files: pinFiles } : undefined
  }

  function file(node: number): { attribute: Attribute; pin: number } | undefined {
    const folder = folderOf(node)
    const attribute = folder?.files[node - folder.node - 1]
    return folder && attribute ? { attribute, pin: folder.pin } : undefined
  }

  function list(node: number): { node: number; kind: NodeAttributes['kind']; name: string }[] {
    const folder = folderOf(node)
    if (!folder || folder.node !== node) return []
    const files = folder.files.map(({ name }, index) => ({
      node: node + 1 + index,
      kind: 'file' as const,
      name,
    }))
    if (node !== ROOT) return files
    return [
      ...files,
      { node: CHIP, kind: 'folder', name: `gpiochip${base}` },
      ...pins.numbers().map((pin) => ({ node: PINS + pin * 8, kind: 'folder' as const, name: `gpio${pin}` })),
    ]
  }

  function attributes(node: number): NodeAttributes | Errno {
    const folder = folderOf(node)
    if (folder?.node === node) return { node, kind: 'folder', permissions: 0o755 }
    const found = file(node)
    return found ? { node, kind: 'file', permissions: found.attribute.permissions } : Errno.ENOENT
  }

  return {
    attributes,
    lookup(folder, name) {
      const entry = list(folder).find((entry) => entry.name === name)
      return entry ? attributes(entry.node) : Errno.ENOENT
    },
    list,
    read(node) {
      const found = file(node)
      if (!found) return Errno.ENOENT
      const text = found.attribute.read?.(found.pin) ?? Errno.EACCES
      return typeof text === 'string' ? `${text}\n` : text
    },
    write(node, text) {
      const found = file(node)
      if (!found) return Errno.ENOENT
      const { write } = found.attribute
      // As in the kernel, one line feed at the end is ignored.
      return write ? write(found.pin, text.replace(/\n$/, '')) : Errno.EACCES
    },
    events(node) {
      const found = file(node)
      return found && node === valueNode(found.pin) ? pins.events(found.pin) : 0
    },
  }
}
