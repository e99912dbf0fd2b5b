import * as files from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { makeFolder, type FolderFiles } from '../../../protocol/model/make-folder.ts'

const root = files.mkdtempSync(join(tmpdir(), 'larder-folders-'))
afterAll(() => files.rmSync(root, { recursive: true }))

test.each(['one', 'one/two/three', 'with/slash/', 'up/../beside'])(
  'the folder %s is created with its parent folders, and a second call is no error',
  (path) => {
    for (let times = 0; times < 2; times += 1) makeFolder(files, `${root}/${path}`, { mode: 0o700 })
    expect(files.statSync(join(root, path)).isDirectory()).toBe(true)
    expect(files.statSync(join(root, path)).mode & 0o777).toBe(0o700)
  },
)

test('the current folder, the root and a relative folder exist or are created', () => {
  const made: string[] = []
  const there = new Set(['.', '/'])
  const fake: FolderFiles = {
    mkdirSync: (path) => void made.push(path),
    statSync: (path) => (there.has(path) ? { isDirectory: () => true } : undefined),
  }
  for (const path of ['.', '/', 'data', 'data/cloud', '/srv']) makeFolder(fake, path)
  expect(made).toEqual(['data', 'data', 'data/cloud', '/srv'])
})

test('a folder that another process makes at the same moment is no error', () => {
  let isMade = false
  const fake: FolderFiles = {
    mkdirSync: () => {
      isMade = true
      throw Object.assign(new Error('exists'), { code: 'EEXIST' })
    },
    statSync: () => (isMade ? { isDirectory: () => true } : undefined),
  }
  expect(() => makeFolder(fake, 'data')).not.toThrow()
})

test.each([
  ['/proc/x', 'ENOTSUP'],
  ['/proc/x/y/z', 'ENOTSUP'],
  ['/dev/null/x', 'ENOTDIR'],
  ['/dev/null', 'EEXIST'],
  [join(root, 'n'.repeat(300)), 'ENAMETOOLONG'],
])('the folder %s cannot be made: the call ends with %s', (path, code) => {
  expect(() => makeFolder(files, path)).toThrow(expect.objectContaining({ code }) as Error)
})

test.each(['reports nothing below a file', 'throws below a file'])(
  'an error about a file in the path names the whole path where statSync %s',
  (behaviour) => {
    const error = (code: string, path: string) => Object.assign(new Error(code), { code, path })
    const fake: FolderFiles = {
      mkdirSync: (path) => {
        throw error(path === '/file' ? 'EEXIST' : 'ENOTDIR', path)
      },
      statSync: (path) => {
        if (path === '/file') return { isDirectory: () => false }
        if (behaviour === 'throws below a file') throw error('ENOTDIR', path)
        return undefined
      },
    }
    for (const path of ['/file/x', '/file/x/y/'])
      expect(() => makeFolder(fake, path)).toThrow(
        expect.objectContaining({ code: 'ENOTDIR', path: path.replace(/\/$/, '') }) as Error,
      )
  },
)
