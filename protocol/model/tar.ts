const BLOCK = 512

/** An archive in the format of POSIX `tar` (ustar) of files with short names. */
export function tarOf(files: Readonly<Record<string, string>>, atMs: number): Buffer {
  const blocks = Object.entries(files).flatMap(([name, text]) => {
    const content = Buffer.from(text)
    const padding = Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK)
    return [headerOf(name, content.length, atMs), content, padding]
  })
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)])
}

/** The files of an archive of `tarOf`. Throws if it is no such archive. */
export function filesOfTar(archive: Buffer): Map<string, string> {
  const files = new Map<string, string>()
  for (let at = 0; at < archive.length && archive[at] !== 0;) {
    const name = archive.toString('latin1', at, at + 100).replace(/\0.*$/s, '')
    const size = Number.parseInt(archive.toString('latin1', at + 124, at + 135), 8)
    // A negative size would lead back to an earlier header.
    if (!(size >= 0)) throw new Error('this is no tar archive')
    files.set(name, archive.toString('utf8', at + BLOCK, at + BLOCK + size))
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK
  }
  return files
}

function headerOf(name: string, size: number, atMs: number): Buffer {
  const header = Buffer.alloc(BLOCK)
  const octal = (value: number, digits: number): string => value.toString(8).padStart(digits, '0')
  header.write(name, 0, 100, 'latin1')
  header.write(`${octal(0o600, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0`, 100, 'latin1')
  header.write(`${octal(size, 11)}\0${octal(Math.floor(atMs / 1000), 11)}\0`, 124, 'latin1')
  // The sum counts its own field as spaces.
  header.write('        0', 148, 'latin1')
  header.write('ustar\u000000', 257, 'latin1')
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${octal(sum, 6)}\0 `, 148, 'latin1')
  return header
}
