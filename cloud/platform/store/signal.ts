/** Something that happens in this process, and who wants to know. */
export interface Signal<T> {
  emit: (value: T) => void
  /** Returns an undo. */
  listen: (listener: (value: T) => void) => () => void
}

export function createSignal<T>(): Signal<T> {
  const listeners = new Set<(value: T) => void>()
  return {
    emit(value) {
      for (const listener of listeners) listener(value)
    },
    listen(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
