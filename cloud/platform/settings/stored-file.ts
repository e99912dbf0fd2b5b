import * as files from 'node:fs'
import { randomHex } from '../../../protocol/model/ids.ts'
import { storeSecret, readSecret } from '../../../protocol/model/stored-secret.ts'
import type { Random } from '../../../protocol/model/runtime.ts'

/** The secret text of a file; undefined if the file is absent or empty. */
export const readStored = (path: string): string | undefined => readSecret(files, path)

/** Receives a sentence if a secret had to be created again. */
export type Say = (sentence: string) => void

/** Stores a secret text in a file that only its owner can read, unless the file has one. Returns the file's text. */
export const storeFirst = (path: string, text: string, say: Say): string =>
  storeSecret(files, path, text, say)

/** Reads a secret of 256 random bits from a file; creates it if it is absent. */
export const ensureRandom = (path: string, random: Random, say: Say): string =>
  readStored(path) ?? storeFirst(path, randomHex(random, 32), say)
