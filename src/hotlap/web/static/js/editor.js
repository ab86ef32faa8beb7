export class DrawView { constructor(app) { this.app = app; } async show() {} hide() {} }
