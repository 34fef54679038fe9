/** A request that a person starts: its progress, and its error. */
export class Action {
  error = $state.raw<unknown>(null);
  isRunning = $state(false);

  /** Runs a request, unless one runs already. Returns true after success. */
  async run(request: () => Promise<unknown>): Promise<boolean> {
    if (this.isRunning) return false;
    this.isRunning = true;
    this.error = null;
    try {
      await request();
      return true;
    } catch (error) {
      this.error = error;
      return false;
    } finally {
      this.isRunning = false;
    }
  }
}
