import "./app.css";
import { mount } from "svelte";
import App from "./App.svelte";
import { language } from "./i18n";

document.documentElement.lang = language;
mount(App, { target: document.getElementById("app")! });
